"""`msc quantize`: a model in reals to one of integers, by calibration data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from msc.driver.verbs.completion import files
from msc.driver.verbs.verb import NUMBER, Verb, say


@click.command(name="quantize", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("--data", metavar="FILE", help="calib.npz or .npy with samples along axis 0, or script.py:LOADER.")
@click.option("-o", "--output", "out", required=True, metavar="OUT", help="Where to, as of msc compile.")
@click.option("--method", default="min-max", show_default=True, metavar="NAME", help="min-max, moving-average, ...")
@click.option("--activations", default="uint8", show_default=True, metavar="TYPE", help="uint8 or int8.")
@click.option("--bits", default=8, show_default=True, help="Of activations, 2 to 8.")
@click.option("--weight-bits", default=8, show_default=True, help="Of weights, 2 to 8.")
@click.option("--symmetric", is_flag=True, help="Activations with the zero point in the middle.")
@click.option("--per-tensor", is_flag=True, help="One scale a weight, not one an output channel.")
@click.option("--weights", metavar="BITS", help="2bit, 4bit or 8bit: weights alone, in blocks that share a scale.")
@click.option("--algorithm", default="rtn", show_default=True, metavar="NAME", help="Of --weights: rtn, gptq or awq.")
@click.option("--block", default=32, show_default=True, metavar="SIZE", help="Inputs that share a scale.")
@click.option("--asymmetric", is_flag=True, help="Blocks of --weights with zero points.")
@click.option("--round-inputs", is_flag=True, help="Of --weights: inputs in 8 bits by blocks, for integer products.")
@click.option("--operators", default="auto", show_default=True, metavar="WHICH", help="all, products or auto.")
@click.option("--dynamic", is_flag=True, help="Scales of rows are found in each call; needs no data.")
@click.option("--keep-f32", "keep", multiple=True, metavar="LAYER", help="Leave a layer in f32; worst=3: the worst 3.")
@click.option("--max-drop", type=NUMBER, help="Leave layers in f32 until --metric falls by no more.")
@click.option("--metric", metavar="FILE.py:NAME", help="A function from a model to a number, the larger the better.")
@click.option("--no-bias-correction", is_flag=True, help="Leave biases as they are.")
@click.option("--equalise", is_flag=True, help="Scale channels between convolutions first.")
@click.option("--prune", type=NUMBER, default=0.0, metavar="SHARE", help="Remove the least channels first, as 0.3.")
@click.option("--smoothing", type=NUMBER, default=0.0, metavar="A", help="SmoothQuant's strength, as 0.5.")
@click.option("--config", metavar="FILE.cfg", help="Take options from a configuration of MindSpore Lite's converter.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dimension the model leaves open.")
@click.option("--force", is_flag=True, help="Let it replace files that msc did not write.")
def command(
    model: str,
    data: str | None,
    out: str,
    keep: tuple[str, ...],
    max_drop: float | None,
    metric: str | None,
    per_tensor: bool,
    no_bias_correction: bool,
    config: str | None,
    dims: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Quantise MODEL by calibration data, write it, and print how each layer does.

    Example: msc quantize lenet5.mir --data digits.npz -o lenet5.int8.onnx
    """
    from msc.driver.artifacts.forms import choose_output
    from msc.driver.calibration_files import lite_configuration, loaded_data, named_object
    from msc.driver.quantising import quantize_file
    from msc.driver.verbs.model_options import parse_dims
    from msc.support.outputs import written_files

    choose_output(None, out)
    worst = [name.removeprefix("worst=") for name in keep if name.startswith("worst=")]
    if worst and not worst[-1].isdigit():
        raise click.UsageError(f"--keep-f32 worst={worst[-1]}: worst=3 keeps the three worst layers")
    wishes = {
        **options,
        "per_channel": not per_tensor,
        "keep_f32": [name for name in keep if not name.startswith("worst=")],
        "worst": int(worst[-1]) if worst else 0,
        "max_drop": max_drop,
        "metric": None if metric is None else named_object(metric),
        "bias_correction": not no_bias_correction,
    }
    if config is not None:
        wishes |= lite_configuration(Path(config))
    if data is None and not (wishes["dynamic"] or (wishes["weights"] and wishes["algorithm"] == "rtn")):
        raise click.UsageError("--data FILE is missing; --dynamic needs none, nor does --weights 4bit")
    made = quantize_file(model, None if data is None else loaded_data(data), wishes, dict(parse_dims(dims)))
    say(made.report())
    with written_files() as written:
        made.save(out, force=force)
    say(f"wrote {', '.join(map(str, written))}", err=True)
