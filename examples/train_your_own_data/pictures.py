"""Train on image files, one folder for each class."""

import msc
import msc.dataset as ds
from msc import Model, nn
from msc.dataset import vision

msc.set_seed(1)


def pictures(folder, shuffle):
    data = ds.ImageFolderDataset(folder, decode=True, shuffle=shuffle)  # [height, width, 3] of bytes
    steps = [vision.Resize((16, 16)), vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    return data.map(steps, "image").batch(16)


train = pictures("pictures/train", shuffle=True)
test = pictures("pictures/test", shuffle=False)
net = nn.SequentialCell(
    nn.Conv2d(3, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2, 2),
    nn.Flatten(),
    nn.Dense(8 * 8 * 8, 3),  # three folders, three classes
)
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01), metrics={"accuracy"})
model.fit(5, train, test)
accuracy = model.eval(test)["accuracy"]
assert accuracy > 0.9

net.set_train(False)  # BatchNorm and Dropout act differently in training
image = next(test.create_tuple_iterator())[0]
msc.compile(net, image).save("pictures.so")
print(f"accuracy {accuracy:.2f}, classes {ds.ImageFolderDataset('pictures/train').get_class_indexing()}")
