"""Write digits of the samples as image files, to have a folder to train on."""

from pathlib import Path

from PIL import Image
from safetensors.numpy import load_file

digits = load_file("samples/lenet5/digits_test.safetensors")  # images 32x32 of bytes
for number, (image, label) in enumerate(zip(digits["images"], digits["labels"], strict=True)):
    if label < 3:
        folder = Path("pictures", "test" if number % 4 == 0 else "train", f"digit-{label}")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(folder / f"{number}.png")
