"""Every differentiable function of the library beside PyTorch: texts with one meaning, and the arguments they share.

A text computes with the arguments `a`, `b`, `c`, `d`. Those of the library see `ops`, `nn`, `mnp` and `Tensor`; that of
PyTorch sees `torch` and `F`, which is `torch.nn.functional`, and the functions of `reference`. It is PyTorch's own
function, but where that has no number, or MindSpore defines another function: there it is the convention of msc.
"""

# ruff: noqa: E501, I001
# fmt: off
# A row of the table stands on one line.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


SECOND: Mapping[str, str] = {
    "F.elu": "the slope at 0 is that of the negative side, and so is its derivative; PyTorch has 0",
    "F.selu": "as elu",
    "F.celu": "as elu",
    "F.prelu": "the same for the derivative of the slope by the weight",
    "F.softplus(a, 2, 4)": "at the threshold the function is still smooth; PyTorch has 0",
    "torch.pow(a, b)": "of a^b at b = 0 the mixed derivative is 1 / a; PyTorch has 0",
    "torch.special.i1e": "at 0 the slope has a kink; msc takes the middle of both sides",
    "F.binary_cross_entropy(a, b": "at chances of 0 and 1 PyTorch's is not the derivative of its first one",
}
"""Where second derivatives are not PyTorch's, by the beginning of its text, with the reason."""


@dataclass(frozen=True)
class Case:
    """A function at some arguments."""

    theirs: str
    inputs: tuple[str, ...]
    ours: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What the table of expected values calls it."""
        return f"{self.theirs} at {', '.join(self.inputs)}"


def _unary(theirs: str, inputs: str, names: str, methods: str = "", own: str = "") -> Iterator[Case]:
    """A function of one tensor: `names` have a prefix or stand in `ops`; `own` are whole texts."""
    ours = [f"{n if '.' in n else 'ops.' + n}(a)" for n in names.split()]
    ours += [f"a.{n}()" for n in methods.split()] + [t.strip() for t in own.split(";") if t.strip()]
    for arguments in inputs.split(","):
        yield Case(theirs, (arguments.strip(),), tuple(ours))


def _case(theirs: str, inputs: str, *ours: str) -> Iterator[Case]:
    for arguments in inputs.split(";"):
        yield Case(theirs, tuple(arguments.strip().split(", ")), ours)


def _elementwise() -> Iterator[Case]:
    line = "line, ends"
    yield from _unary("torch.abs(a)", line, "abs absolute mnp.abs mnp.absolute mnp.fabs", "abs absolute", "ops.Abs()(a); abs(a)")
    yield from _unary("torch.neg(a)", line, "neg negative mnp.negative", "neg negative", "ops.Neg()(a); -a")
    yield from _unary("torch.sign(a)", line, "sign mnp.sign", "sign", "ops.Sign()(a)")
    yield from _unary("torch.square(a)", line, "square mnp.square", "square", "ops.Square()(a)")
    yield from _unary("torch.exp(a)", line, "exp mnp.exp tensor_exp", "exp", "ops.Exp()(a)")
    yield from _unary("torch.exp2(a)", line, "exp2 mnp.exp2", "exp2")
    yield from _unary("torch.expm1(a)", line, "expm1 mnp.expm1", "expm1", "ops.Expm1()(a)")
    yield from _unary("torch.log(a)", "positive", "log mnp.log", "log", "ops.Log()(a)")
    yield from _unary("torch.log2(a)", "positive", "log2 mnp.log2", "log2")
    yield from _unary("torch.log10(a)", "positive", "log10 mnp.log10", "log10")
    yield from _unary("torch.log1p(a)", "positive", "log1p mnp.log1p", "log1p", "ops.Log1p()(a)")
    yield from _unary("torch.sqrt(a)", "positive", "sqrt mnp.sqrt", "sqrt", "ops.Sqrt()(a)")
    yield from _unary("torch.rsqrt(a)", "positive", "rsqrt mnp.rsqrt", "rsqrt", "ops.Rsqrt()(a)")
    names = "reciprocal mnp.reciprocal"
    yield from _unary("torch.reciprocal(a)", "positive", names, "reciprocal", "ops.Reciprocal()(a); ops.Inv()(a)")
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
        own = f"ops.{name.capitalize()}()(a)" + ("; nn.Tanh()(a)" if name == "tanh" else "")
        yield from _unary(f"torch.{name}(a)", line if name == "tanh" else "line", f"{name} mnp.{name}", name, own)
    for name, inputs in {"asin": "unit", "acos": "unit", "atan": line, "asinh": "line", "acosh": "above one"}.items():
        primitive = "ACos" if name == "acos" else name.capitalize()
        long = name.replace("a", "arc", 1)
        own = f"ops.{primitive}()(a)"
        yield from _unary(f"torch.{name}(a)", inputs, f"{name} {long} mnp.{long}", f"{name} {long}", own)
    yield from _unary("torch.atanh(a)", "unit", "atanh arctanh mnp.arctanh", "atanh arctanh", "ops.Atanh()(a)")
    yield from _unary("torch.erf(a)", line, "erf mnp.erf", "erf", "ops.Erf()(a)")
    yield from _unary("torch.erfc(a)", line, "erfc", "erfc", "ops.Erfc()(a)")
    for name in ("floor", "ceil", "trunc"):
        yield from _unary(f"torch.{name}(a)", "line", f"{name} mnp.{name}", name, f"ops.{name.capitalize()}()(a)")
    own = "ops.Round()(a); ops.Rint()(a)"
    yield from _unary("torch.round(a)", "line", "round rint mnp.round mnp.rint mnp.around", "round rint", own)
    yield from _unary("torch.trunc(a)", "line", "mnp.fix")
    yield from _unary("torch.frac(a)", "line", "frac", "frac")
    yield from _unary("torch.deg2rad(a)", "line", "deg2rad mnp.deg2rad mnp.radians", "deg2rad")
    yield from _unary("torch.rad2deg(a)", "line", "rad2deg mnp.rad2deg mnp.degrees", "rad2deg")
    yield from _unary("torch.logit(a)", "chances", "logit", "logit")
    yield from _unary("torch.logit(a, 1e-3)", "chances", "", own="ops.logit(a, 1e-3)")
    yield from _unary("torch.sigmoid(a)", line, "sigmoid", "sigmoid", "ops.Sigmoid()(a); nn.Sigmoid()(a)")


def _activations() -> Iterator[Case]:
    line = "line, ends"
    yield from _unary("torch.relu(a)", line, "relu", "relu", "ops.ReLU()(a); nn.ReLU()(a)")
    yield from _unary("F.relu6(a)", line, "relu6", "relu6", "ops.ReLU6()(a); nn.ReLU6()(a)")
    yield from _unary("F.silu(a)", line, "silu swish", "silu", "ops.SiLU()(a); nn.SiLU()(a)")
    yield from _unary("F.mish(a)", line, "mish", "mish", "ops.Mish()(a); nn.Mish()(a)")
    yield from _unary("F.softsign(a)", line, "softsign", "softsign", "ops.Softsign()(a); nn.Softsign()(a)")
    yield from _unary("F.selu(a)", line, "selu", "selu", "ops.SeLU()(a); nn.SeLU()(a)")
    yield from _unary("F.hardswish(a)", line, "hardswish", "hardswish", "ops.HSwish()(a); nn.HSwish()(a)")
    yield from _unary("F.hardsigmoid(a)", line, "hardsigmoid", "hardsigmoid", "ops.HSigmoid()(a); nn.HSigmoid()(a)")
    yield from _unary("a * 0.5 * (1 + torch.erf(a * 2 ** -0.5))", line, "gelu", "", "nn.GELU(False)(a)")
    yield from _unary("F.gelu(a, approximate='tanh')", line, "", "", "ops.gelu(a, 'tanh'); ops.GeLU()(a); nn.GELU()(a)")
    yield from _unary("a * torch.sigmoid(a * 1.702)", line, "fast_gelu", "", "ops.FastGeLU()(a); nn.FastGelu()(a)")
    yield from _unary("F.leaky_relu(a, 0.2)", line, "leaky_relu", "", "nn.LeakyReLU()(a)")
    yield from _unary("F.elu(a)", line, "elu", "", "ops.Elu()(a); nn.ELU()(a)")
    yield from _unary("F.elu(a, 0.5)", line, "", "", "ops.elu(a, 0.5); nn.ELU(0.5)(a)")
    yield from _unary("F.celu(a)", line, "celu", "", "ops.CeLU()(a); nn.CELU()(a)")
    yield from _unary("F.celu(a, 2.0)", line, "", "", "ops.celu(a, 2.0); nn.CELU(2.0)(a)")
    yield from _case("F.prelu(a, b[:1])", "line, channel", "ops.prelu(a, b[:1])", "ops.PReLU()(a, b[:1])")
    yield from _case("F.prelu(a, b)", "image, channel", "ops.prelu(a, b)")
    yield from _unary("F.prelu(a, torch.full((1,), 0.25))", "line", "", "", "typed(nn.PReLU(), a)")
    yield from _unary("F.softplus(a)", line, "softplus", "", "ops.Softplus()(a); nn.Softplus()(a)")
    yield from _unary("F.softplus(a, 2, 4)", line, "", "", "ops.softplus(a, 2, 4)")
    yield from _unary("F.logsigmoid(a)", line, "logsigmoid", "", "nn.LogSigmoid()(a)")
    yield from _unary("F.hardtanh(a)", line, "hardtanh", "", "nn.Hardtanh()(a)")
    yield from _unary("F.hardshrink(a)", line, "hardshrink", "", "ops.HShrink()(a); nn.HShrink()(a)")
    yield from _unary("F.softshrink(a)", line, "softshrink", "", "ops.SoftShrink()(a); nn.SoftShrink()(a)")
    yield from _unary("F.tanhshrink(a)", line, "tanhshrink", "", "nn.Tanhshrink()(a)")
    yield from _unary("F.threshold(a, 0.5, -2)", line, "", "", "ops.threshold(a, 0.5, -2); nn.Threshold(0.5, -2)(a)")
    yield from _unary("F.glu(a)", "rows, wide rows", "glu", "", "nn.GLU()(a)")
    ours = "mnp.clip(a, -1, 2); a.clip(-1, 2); a.clamp(-1, 2); ops.clip_by_value(a, -1, 2); ops.clip(a, -1, 2)"
    yield from _unary("torch.clamp(a, -1, 2)", line, "", "", f"ops.clamp(a, -1, 2); {ours}")
    yield from _unary("torch.clamp(a, min=0.5)", line, "", "", "ops.clamp(a, 0.5); a.clamp(0.5)")
    tensors = "torch.clamp(a, torch.zeros_like(a), torch.ones_like(a))"
    yield from _unary(tensors, "line", "", "", "ops.clamp(a, ops.zeros_like(a), ops.ones_like(a))")
    rows = "rows, wide rows, infinite rows, hidden rows"
    own = "ops.Softmax()(a); nn.Softmax()(a); ops.softmax(a, 1)"
    yield from _unary("torch.softmax(a, -1)", rows, "softmax", "softmax", own)
    own = "ops.LogSoftmax()(a); nn.LogSoftmax()(a)"
    yield from _unary("torch.log_softmax(a, -1)", rows, "log_softmax", "log_softmax", own)
    yield from _unary("torch.softmax(-a, -1)", "rows, wide rows", "softmin", "", "nn.Softmin()(a)")
    yield from _unary("torch.softmax(a, -3)", "volume", "", "", "nn.Softmax2d()(a)")


def _pairs() -> Iterator[Case]:
    both = "x, y"
    for name, sign in {"add": "+", "sub": "-", "mul": "*"}.items():
        long = {"add": "add", "sub": "subtract", "mul": "multiply"}[name]
        own = [f"ops.{name}(a, b)", f"ops.{long}(a, b)", f"mnp.{long}(a, b)", f"a.{name}(b)", f"a {sign} b"]
        own += [f"ops.{name.capitalize()}()(a, b)", f"ops.tensor_{name}(a, b)"]
        yield from _case(f"torch.{name}(a, b)", both, *own)
    yield from _case("torch.add(a, b)", both, "ops.TensorAdd()(a, b)", "ops.AddN()([a, b])", "ops.add_n([a, b])")
    yield from _case("torch.mul(a, b)", both, "ops.Muls()(a, b)", "a.multiply(b)")
    yield from _case("torch.sub(a, b)", both, "a.subtract(b)")
    ours = "ops.div(a, b)", "ops.divide(a, b)", "ops.true_divide(a, b)", "mnp.divide(a, b)", "mnp.true_divide(a, b)"
    more = "a.div(b)", "a.divide(b)", "a.true_divide(b)", "a / b", "ops.Div()(a, b)", "ops.RealDiv()(a, b)"
    yield from _case("torch.div(a, b)", "x, divisors", *ours, *more, "ops.Divs()(a, b)", "ops.tensor_div(a, b)")
    safe = "torch.where(b == 0, 0.0, a / torch.where(b == 0, 1.0, b))"
    yield from _case(safe, both, "ops.div_no_nan(a, b)", "ops.DivNoNan()(a, b)")
    ours = "ops.floor_mod(a, b)", "ops.remainder(a, b)", "mnp.mod(a, b)", "mnp.remainder(a, b)", "a % b"
    more = "a.floor_mod(b)", "a.remainder(b)", "ops.FloorMod()(a, b)", "ops.tensor_mod(a, b)"
    yield from _case("torch.remainder(a, b)", "x, divisors", *ours, *more)
    ours = "ops.fmod(a, b)", "mnp.fmod(a, b)", "a.fmod(b)", "ops.Mod()(a, b)"
    yield from _case("torch.fmod(a, b)", "x, divisors", *ours)
    yield from _case("torch.fmod(a, 2)", "line", "ops.fmod(a, 2)")
    ours = "ops.pow(a, b)", "mnp.power(a, b)", "a.pow(b)", "a ** b", "ops.Pow()(a, b)", "ops.tensor_pow(a, b)"
    yield from _case("torch.pow(a, b)", "bases, exponents", *ours)
    for exponent in (0, 1, 2, 3, 0.5, 1.5, -1):
        yield from _unary(f"torch.pow(a, {exponent})", "positive", "", "", f"ops.pow(a, {exponent}); a ** {exponent}")
    for exponent in (2, 3, 4):
        yield from _unary(f"torch.pow(a, {exponent})", "line", "", "", f"ops.pow(a, {exponent}); a ** {exponent}")
    yield from _unary("torch.pow(0.0, a)", "exponents", "", "", "0.0 ** a")
    for name in ("maximum", "minimum"):
        ours = f"ops.{name}(a, b)", f"mnp.{name}(a, b)", f"a.{name}(b)", f"ops.{name.capitalize()}()(a, b)"
        yield from _case(f"torch.{name}(a, b)", both, *ours)
        yield from _unary(f"torch.{name}(a, torch.tensor(1.0))", "line", "", "", f"ops.{name}(a, Tensor(1.0, a.dtype))")
    ours = "ops.atan2(a, b)", "mnp.arctan2(a, b)", "a.atan2(b)", "ops.Atan2()(a, b)"
    yield from _case("torch.atan2(a, b)", both, *ours)
    yield from _case("length(torch.stack([a, b]), 0)", both, "mnp.hypot(a, b)")
    yield from _case("torch.logaddexp(a, b)", both, "mnp.logaddexp(a, b)")
    yield from _case("a * torch.log(torch.where((a == 0) & (b == 0), 1.0, b))", "x, chances of x", "ops.xlogy(a, b)", "ops.Xlogy()(a, b)")
    yield from _case("torch.lerp(a, b, c)", "x, y, labels", "ops.lerp(a, b, c)", "ops.Lerp()(a, b, c)")
    yield from _case("torch.addcmul(a, b, c)", "x, y, labels", "ops.addcmul(a, b, c)", "a.addcmul(b, c)")
    yield from _case("torch.addcdiv(a, b, c)", "x, y, divisors", "ops.addcdiv(a, b, c)", "a.addcdiv(b, c)")
    yield from _case("(a - b) ** 2", both, "ops.SquaredDifference()(a, b)")
    ours = "ops.where(a > 0, a, b)", "mnp.where(a > 0, a, b)", "ops.select(a > 0, a, b)", "ops.Select()(a > 0, a, b)"
    yield from _case("torch.where(a > 0, a, b)", both, *ours, "a.where(a > 0, b)")
    yield from _case("torch.heaviside(a, b).detach() + 0 * a", both, "mnp.heaviside(a, ops.stop_gradient(b))")


def _reductions() -> Iterator[Case]:
    rows = "rows"
    for name in ("sum", "mean", "prod"):
        ours = f"ops.{name}(a, 1)", f"mnp.{name}(a, 1)", f"a.{name}(1)", f"ops.Reduce{name.capitalize()}()(a, 1)"
        more = (f"ops.reduce_{name}(a, 1)", *(() if name == "prod" else (f"ops.{name.capitalize()}Ext()(a, 1)",)))
        yield from _case(f"torch.{name}(a, 1)", "rows; infinite rows", *ours, *more)
        yield from _case(f"torch.{name}(a)", "square", f"ops.{name}(a)")
    yield from _case("torch.nansum(a, 1)", rows, "mnp.nansum(a, 1)")
    yield from _case("torch.mean(a, 1)", rows, "mnp.average(a, 1)")
    for name in ("max", "min"):
        long = name.capitalize()
        ours = f"ops.a{name}(a, 1)", f"mnp.a{name}(a, 1)", f"mnp.{name}(a, 1)", f"a.a{name}(1)", f"a.{name}(axis=1)"
        more = f"ops.Reduce{long}()(a, 1)", f"ops.reduce_{name}(a, 1)"
        yield from _case(f"torch.a{name}(a, 1)", "rows; square; wide rows; infinite rows", *ours, *more)
        yield from _case(f"torch.{name}(a)", "square; rows", f"ops.{name}(a)[0]", f"a.{name}()", f"mnp.{name}(a)")
        ours = f"ops.{name}(a, 1)[0]", f"ops.Arg{long}WithValue(1)(a)[1]", f"ops.{name}_with_index(a, 1)[0]"
        more = f"a.{name}(1)[0]", f"a.{name}(axis=1, return_indices=True)[0]", f"a.arg{name}_with_value(1)[0]"
        yield from _case(f"torch.{name}(a, 1)[0]", "rows; square; wide rows; infinite rows", *ours, *more)
        theirs = f"in_turn(torch.{name}imum, a, b[:, 0], c)"
        ours = f"ops.tensor_scatter_{name}(a, b, c)", f"a.tensor_scatter_{name}(b, c)", f"ops.TensorScatter{long}()(a, b, c)"
        yield from _case(theirs, "x, line places, updates", *ours)
        yield from _case(f"torch.cum{name}(a, 1)[0]", "rows; square; wide rows", f"ops.cum{name}(a, 1)[0]")
    yield from _case("torch.amax(a, 1) - torch.amin(a, 1)", rows, "ops.ptp(a, 1)", "mnp.ptp(a, 1)", "a.ptp(1)")
    for name, plain in {"var": "torch.var(a, 1, correction=0)", "std": "torch.std(a, 1, correction=0)"}.items():
        ours = f"ops.{name}(a, 1)", f"mnp.{name}(a, 1)", f"a.{name}(1)", f"ops.{name}_mean(a, 1)[0]"
        yield from _case(plain, "rows; square; wide rows", *ours)
        yield from _case(plain.replace("0)", "1)"), "rows", f"ops.{name}(a, 1, 1)")
    yield from _case("torch.std(a, 1, correction=1)", rows, "ops.ReduceStd(1)(a)[0]")
    yield from _case("torch.std(a, correction=0)", "scalar; square; rows", "ops.std(a)", "a.std()")
    yield from _case("torch.logsumexp(a, 1)", "rows; wide rows; infinite rows; hidden rows", "ops.logsumexp(a, 1)", "a.logsumexp(1)")
    for order in (1, 2, 3, 1.5, 0.5, float("inf"), -float("inf"), 0):
        text = repr(order) if abs(order) < 10 else f"float('{order}')"
        yield from _case(f"torch.linalg.vector_norm(a, {text}, 1)", "rows; square", f"ops.norm(a, {text}, 1)", f"a.norm({text}, 1)")
    yield from _case("torch.linalg.vector_norm(a)", "rows; square; scalar", "ops.norm(a)", "a.norm()")
    yield from _case("torch.cumsum(a, 1)", rows, "ops.cumsum(a, 1)", "mnp.cumsum(a, 1)", "a.cumsum(1)", "ops.CumSum()(a, 1)")
    yield from _case("torch.cumprod(a, 1)", "rows; square", "ops.cumprod(a, 1)", "mnp.cumprod(a, 1)", "a.cumprod(1)", "ops.CumProd()(a, 1)")
    yield from _case("torch.sort(a, dim=1, stable=True)[0]", "rows; square", "ops.sort(a, 1)[0]", "mnp.sort(a, 1)", "a.sort(1)[0]", "ops.Sort(1)(a)[0]")
    yield from _case("torch.sort(a, dim=1, descending=True, stable=True)[0][:, :2]", "rows; square", "ops.topk(a, 2, 1)[0]", "a.topk(2, 1)[0]", "a.top_k(2, 1)[0]", "ops.TopK()(a, 2)[0]")
    yield from _case("torch.sort(a, dim=1, stable=True)[0][:, 1]", "rows; square", "ops.median(a, 1)[0]")
    yield from _case("torch.sum(a ** 2) / 2", "rows", "ops.l2_loss(a)", "ops.L2Loss()(a)")


def _lengths() -> Iterator[Case]:
    two = "rows, other rows"
    yield from _case("F.normalize(a)", "rows; square; wide rows", "ops.normalize(a)")
    yield from _case("F.normalize(a, p=1.0)", "rows", "ops.normalize(a, 1.0)")
    yield from _case("F.normalize(a, p=3.0)", "rows", "ops.normalize(a, 3.0)")
    ours = "ops.l2_normalize(a, 1, 1e-4)", "ops.L2Normalize(1, 1e-4)(a)"
    yield from _case("a / torch.sqrt(torch.clamp((a * a).sum(1, keepdim=True), 1e-4))", "rows", *ours)
    yield from _case("(a * b).sum(1) / torch.clamp(length(a, 1) * length(b, 1), min=1e-8)", two, "ops.cosine_similarity(a, b)")
    yield from _case("(a * b).sum(1) / torch.clamp(length(a, 1) * length(b, 1), min=1e-6)", two, "ops.cosine_similarity(a, b, 1, 1e-6)")
    yield from _case("torch.cdist(a, b, 2.0)", two, "ops.cdist(a, b)")
    yield from _case("torch.cdist(a, b, 1.0)", two, "ops.cdist(a, b, 1.0)")
    yield from _case("torch.cdist(a, b, 3.0)", two, "ops.cdist(a, b, 3.0)")
    yield from _case("a * torch.clamp(1.0 / (torch.linalg.vector_norm(a) + 1e-6), max=1.0)", "rows; square", "ops.clip_by_norm(a, 1.0)")
    yield from _case("a * (2.0 / torch.maximum(torch.linalg.vector_norm(a), torch.tensor(2.0, dtype=a.dtype)))", "rows", "ops.clip_by_global_norm(a, 2.0)")
    yield from _case("F.layer_norm(a, (4,))", "rows", "ops.layer_norm(a, (4,))", "typed(nn.LayerNorm((4,), epsilon=1e-5), a)")
    yield from _case("F.rms_norm(a, (4,), eps=1e-6)", "rows", "typed(nn.RMSNorm((4,), 1e-6), a)")
    yield from _case("F.group_norm(a, 1)", "image", "ops.group_norm(a, 1)", "typed(nn.GroupNorm(1, 2, 1e-5), a)")
    yield from _case("F.instance_norm(a)", "image", "typed(nn.InstanceNorm2d(2), a)")
    yield from _case("F.rms_norm(a, (4,), b, 1e-6)", "rows, weights", "ops.rms_norm(a, b)[0]", "ops.RmsNorm()(a, b)[0]")
    yield from _case("F.layer_norm(a, (4,), b, b, 1e-7)", "rows, weights", "ops.LayerNorm(1, 1)(a, b, b)[0]")
    for n, name in {1: "signal", 2: "image", 3: "volume"}.items():
        channels = 1 if n == 3 else 2
        yield from _case("F.instance_norm(a)", name, f"typed(nn.InstanceNorm{n}d({channels}), a)")
        if n > 1:
            theirs = f"F.batch_norm(a, torch.zeros({channels}), torch.ones({channels}), training=True)"
            yield from _case(theirs, name, f"typed(nn.BatchNorm{n}d({channels}).set_train(), a)")
    constants = "ops.zeros_like(b), ops.ones_like(b), ops.ones_like(b), ops.zeros_like(b)"
    theirs = "F.batch_norm(a, torch.zeros(2), torch.ones(2), training=True)"
    yield from _case(theirs, "image, =channel", f"ops.batch_norm(a, {constants}, True)")
    theirs = "F.batch_norm(a, torch.zeros(2), torch.ones(2))"
    other = "ops.ones_like(b), ops.zeros_like(b), ops.zeros_like(b), ops.ones_like(b)"
    yield from _case(theirs, "image, =channel", f"ops.BatchNorm(epsilon=1e-5)(a, {other})[0]", f"ops.batch_norm(a, {constants})")
    batch = "F.batch_norm(a, torch.zeros(3), torch.ones(3), training=True)"
    yield from _case(batch, "batch", "typed(nn.BatchNorm1d(3).set_train(), a)")


def _windows() -> Iterator[Case]:
    yield from _case("F.max_pool1d(a, 2, 1)", "signal", "nn.MaxPool1d(2, 1)(a)")
    yield from _case("F.max_pool2d(a, 2, 2)", "image", "ops.max_pool2d(a, 2, 2)", "nn.MaxPool2d(2, 2)(a)", "ops.MaxPool(2, 2)(a)")
    yield from _case("F.max_pool2d(a, 3, 1, 1)", "image; even image", "ops.max_pool2d(a, 3, 1, 1)")
    yield from _case("F.max_pool3d(a, 2, 1)", "volume", "nn.MaxPool3d(2, 1)(a)")
    yield from _case("F.adaptive_max_pool1d(a, 2)", "signal", "ops.adaptive_max_pool1d(a, 2)", "nn.AdaptiveMaxPool1d(2)(a)")
    yield from _case("F.adaptive_max_pool1d(a, 4)", "signal", "ops.adaptive_max_pool1d(a, 4)")
    yield from _case("F.adaptive_max_pool2d(a, 2)", "image; even image", "ops.adaptive_max_pool2d(a, 2)", "nn.AdaptiveMaxPool2d(2)(a)")
    yield from _case("F.adaptive_max_pool2d(a, (3, 1))", "image; even image", "ops.adaptive_max_pool2d(a, (3, 1))")
    yield from _case("F.adaptive_max_pool3d(a, 2)", "volume", "nn.AdaptiveMaxPool3d(2)(a)")
    yield from _case("F.adaptive_avg_pool1d(a, 4)", "signal", "ops.adaptive_avg_pool1d(a, 4)", "nn.AdaptiveAvgPool1d(4)(a)")
    yield from _case("F.adaptive_avg_pool2d(a, 2)", "image", "ops.adaptive_avg_pool2d(a, 2)", "nn.AdaptiveAvgPool2d(2)(a)")
    yield from _case("F.adaptive_avg_pool3d(a, 3)", "volume", "ops.adaptive_avg_pool3d(a, 3)", "nn.AdaptiveAvgPool3d(3)(a)")
    yield from _case("F.avg_pool2d(a, 2, 1)", "image", "ops.avg_pool2d(a, 2, 1)", "nn.AvgPool2d(2, 1)(a)", "ops.AvgPool(2, 1)(a)")
    yield from _case("F.avg_pool1d(a, 2, 1)", "signal", "ops.avg_pool1d(a, 2, 1)", "nn.AvgPool1d(2, 1)(a)")
    yield from _case("F.avg_pool3d(a, 2, 1)", "volume", "nn.AvgPool3d(2, 1)(a)", "ops.AvgPool3D(2, 1)(a)")
    yield from _case("F.max_pool3d(a, 2, 2)", "volume", "ops.MaxPool3D(2, 2)(a)")
    yield from _case("F.local_response_norm(a, 3, 3.0, 0.5, 1.0)", "image", "ops.lrn(a, 1, 1.0, 1.0, 0.5)", "nn.LRN(1, 1.0, 1.0, 0.5)(a)", "ops.LRN(1, 1.0, 1.0, 0.5)(a)")


def _choices() -> Iterator[Case]:
    taken = "rows, places"
    yield from _case("torch.gather(a, 1, b)", taken, "ops.gather_elements(a, 1, b)", "ops.gather_d(a, 1, b)", "a.gather_elements(1, b)", "ops.GatherD()(a, 1, b)")
    yield from _case("a[b[:, 0]]", taken, "a[b[:, 0]]", "ops.gather(a, b[:, 0], 0)", "ops.index_select(a, 0, b[:, 0])", "ops.Gather()(a, b[:, 0], 0)")
    yield from _case("torch.scatter_add(a, 1, b, c)", "rows, places, other rows", "a.scatter_add(1, b, c)", "ops.scatter_add(a, 1, b, c)")
    yield from _case("torch.where(a > 0, torch.log(torch.where(a > 0, a, 1.0)), 0.0)", "line; rows", "ops.where(a > 0, ops.log(a), 0.0)")
    yield from _case("torch.where(a > 0, torch.sqrt(torch.where(a > 0, a, 1.0)), 0.0)", "line; rows", "ops.where(a > 0, ops.sqrt(a), 0.0)", "ops.sqrt(ops.relu(a))")
    yield from _case("torch.where(a != 0, 1 / torch.where(a != 0, a, 1.0), 0.0)", "line", "ops.where(a != 0, 1 / a, 0.0)")
    yield from _case("torch.where(a > 0, torch.where(a > 0, a, 1.0) ** 0.5, 0.0)", "line", "ops.where(a > 0, a ** 0.5, 0.0)")


def _losses() -> Iterator[Case]:
    for how in ("mean", "sum", "none"):
        r = f"reduction='{how}'"
        for theirs, loss, cell in (("mse_loss", "mse_loss", "MSELoss"), ("l1_loss", "l1_loss", "L1Loss"), ("smooth_l1_loss", "smooth_l1_loss", "SmoothL1Loss"), ("huber_loss", "huber_loss", "HuberLoss")):
            ours = f"ops.{loss}(a, b, {r})", f"nn.{cell}({r})(a, b)"
            yield from _case(f"F.{theirs}(a, b, {r})", "x, y", *ours)
        ours = f"ops.soft_margin_loss(a, b, {r})", f"nn.SoftMarginLoss({r})(a, b)"
        yield from _case(f"reduced(F.softplus(-a * b), '{how}')", "x, =signs", *ours)
        ours = f"ops.hinge_embedding_loss(a, b, {r})", f"nn.HingeEmbeddingLoss({r})(a, b)"
        yield from _case(f"F.hinge_embedding_loss(a, b, {r})", "x, =signs", *ours)
        ours = f"ops.margin_ranking_loss(a, b, c, {r})", f"nn.MarginRankingLoss({r})(a, b, c)"
        yield from _case(f"F.margin_ranking_loss(a, b, c, {r})", "x, y, =signs", *ours)
        ours = f"ops.margin_ranking_loss(a, b, c, 1.0, {r})", f"nn.MarginRankingLoss(1.0, {r})(a, b, c)"
        yield from _case(f"F.margin_ranking_loss(a, b, c, 1.0, {r})", "x, y, =signs", *ours)
        ours = f"ops.binary_cross_entropy(a, b, {r})", f"nn.BCELoss({r})(a, b)", f"ops.BinaryCrossEntropy({r})(a, b, None)"
        yield from _case(f"F.binary_cross_entropy(a, b, {r})", "chances, =half", *ours)
        ours = f"ops.binary_cross_entropy(ops.sigmoid(a), b, {r})", f"nn.BCELoss({r})(nn.Sigmoid()(a), b)"
        yield from _case(f"F.binary_cross_entropy(torch.sigmoid(a), b, {r})", "x, =labels", *ours)
        ours = f"ops.binary_cross_entropy_with_logits(a, b, {r})", f"nn.BCEWithLogitsLoss({r})(a, b)"
        yield from _case(f"F.binary_cross_entropy_with_logits(a, b, {r})", "x, =labels", *ours)
        weighted = "weight=b, pos_weight=b * 0 + 3.0"
        yield from _case(f"F.binary_cross_entropy_with_logits(a, c, {weighted}, {r})", "x, =divisors, =labels", f"ops.binary_cross_entropy_with_logits(a, c, {weighted}, {r})")
        for labels in ("classes", "ignored", "all ignored"):
            ours = f"ops.cross_entropy(a, b, {r})", f"nn.CrossEntropyLoss({r})(a, b)"
            yield from _case(f"F.cross_entropy(a, b, {r})", f"rows, {labels}", *ours)
            ours = f"ops.nll_loss(a, b, {r})", f"nn.NLLLoss({r})(a, b)"
            yield from _case(f"F.nll_loss(a, b, {r})", f"rows, {labels}", *ours)
            yield from _case(f"F.cross_entropy(a, b, c, label_smoothing=0.1, {r})", f"rows, {labels}, =weights", f"ops.cross_entropy(a, b, c, label_smoothing=0.1, {r})")
        yield from _case(f"F.cross_entropy(a, b, {r})", "infinite rows, three classes; wide rows, three classes", f"ops.cross_entropy(a, b, {r})")
        yield from _case(f"F.cross_entropy(a, b, {r})", "rows, =row chances", f"ops.cross_entropy(a, b, {r})")
        ours = f"ops.kl_div(a, b, {r})", f"nn.KLDivLoss({r})(a, b)"
        yield from _case(f"F.kl_div(a, b, {r})", "rows, =row chances", *ours)
        ours = f"ops.cosine_embedding_loss(a, b, c, {r})", f"nn.CosineEmbeddingLoss({r})(a, b, c)"
        yield from _case(f"F.cosine_embedding_loss(a, b, c, {r})", "rows, other rows, =row signs", *ours)
        ours = f"ops.triplet_margin_loss(a, b, c, {r})", f"nn.TripletMarginLoss({r})(a, b, c)"
        yield from _case(f"F.triplet_margin_loss(a, b, c, {r})", "rows, other rows, third rows", *ours)
        ours = f"ops.poisson_nll_loss(a, b, {r})", f"nn.PoissonNLLLoss({r})(a, b)"
        yield from _case(f"F.poisson_nll_loss(a, b, {r})", "labels, =x", *ours)
        yield from _case(f"F.poisson_nll_loss(a, b, log_input=False, full=True, {r})", "labels, =divisors", f"ops.poisson_nll_loss(a, b, False, True, {r})")
        ours = f"ops.gaussian_nll_loss(a, b, c, {r})", f"nn.GaussianNLLLoss({r})(a, b, c)"
        yield from _case(f"reduced((torch.log(c.clamp(min=1e-6)) + (a - b) ** 2 / c.clamp(min=1e-6)) / 2, '{how}')", "x, y, variances", *ours)
        ours = f"ops.multilabel_soft_margin_loss(a, b, {r})", f"nn.MultiLabelSoftMarginLoss({r})(a, b)"
        yield from _case(f"F.multilabel_soft_margin_loss(a, b, {r})", "rows, =row labels", *ours)
        for p in (1, 2):
            ours = f"ops.multi_margin_loss(a, b, {p}, {r})", f"nn.MultiMarginLoss({p}, {r})(a, b)"
            yield from _case(f"F.multi_margin_loss(a, b, {p}, {r})", "rows, classes", *ours)
        ours = f"ops.multilabel_margin_loss(a, b, {r})", f"nn.MultilabelMarginLoss({r})(a, b)"
        yield from _case(f"F.multilabel_margin_loss(a, b, {r})", "rows, label sets", *ours)
    yield from _case("F.kl_div(a, b, log_target=True)", "rows, other rows", "ops.kl_div(a, b, log_target=True)")
    yield from _case("F.kl_div(a, b, reduction='batchmean')", "rows, =row chances", "ops.KLDivLoss('batchmean')(a, b)")
    yield from _case("F.nll_loss(a, b, c, reduction='sum')", "rows, classes, =weights", "ops.NLLLoss('sum')(a, b, c)[0]")
    lengths = "(4, 3), (2, 2)"
    theirs = f"F.ctc_loss(torch.log_softmax(a, 2), torch.tensor([[1, 2], [1, 1]]), {lengths}, reduction='sum')"
    targets = "Tensor([[1, 2], [1, 1]])"
    for zero in (False, True):
        ours = f"ops.ctc_loss(ops.log_softmax(a, 2), {targets}, {lengths}, 0, 'sum', {zero})[0]"
        cell = f"nn.CTCLoss(reduction='sum', zero_infinity={zero})(ops.log_softmax(a, 2), {targets}, {lengths})"
        yield from _case(theirs.replace("'sum'", f"'sum', zero_infinity={zero}"), "steps", ours, cell)
    yield from _case("F.smooth_l1_loss(a, b, beta=0.5)", "x, y", "ops.smooth_l1_loss(a, b, 0.5, 'mean')", "ops.SmoothL1Loss(0.5, 'mean')(a, b)")
    yield from _case("F.l1_loss(a, b)", "x, y", "nn.MAELoss()(a, b)")
    yield from _case("F.binary_cross_entropy_with_logits(a, b, reduction='none')", "x, =labels", "ops.SigmoidCrossEntropyWithLogits()(a, b)", "ops.BCEWithLogitsLoss('none')(a, b, Tensor(1.0, a.dtype), Tensor(1.0, a.dtype))")
    soft = "-(torch.log_softmax(a, -1) * b).sum(-1)"
    yield from _case(soft, "rows, =row chances", "ops.softmax_cross_entropy_with_logits(a, b)", "nn.SoftmaxCrossEntropyWithLogits()(a, b)", "ops.SoftmaxCrossEntropyWithLogits()(a, b)[0]")
    ours = "ops.sparse_softmax_cross_entropy(a, b)", "nn.SoftmaxCrossEntropyWithLogits(sparse=True)(a, b)"
    yield from _case("F.cross_entropy(a, b, reduction='none')", "rows, classes; wide rows, three classes", *ours)
    yield from _case("F.cross_entropy(a, b)", "rows, classes", "ops.SparseSoftmaxCrossEntropyWithLogits()(a, b)")
    yield from _case("length(a - b, 0) / 12 ** 0.5", "x, y", "nn.RMSELoss()(a, b)")
    yield from _case("1 - 2 * (a * b).sum() / ((a * a).sum() + (b * b).sum() + 1e-5)", "x, =labels", "nn.DiceLoss()(a, b)")
    focal = "-((1 - torch.softmax(a, 1)) ** 2 * torch.log_softmax(a, 1) * F.one_hot(b, 4)).sum(1).mean()"
    yield from _case(focal, "rows, classes; wide rows, three classes", "ops.focal_loss(a, b)", "nn.FocalLoss()(a, b)")
    ours = "nn.TripletMarginWithDistanceLoss()(a, b, c)"
    yield from _case("F.triplet_margin_with_distance_loss(a, b, c)", "rows, other rows, third rows", ours)


def _rarely() -> Iterator[Case]:
    yield from _case("torch.copysign(a, b)", "x, =y", "ops.copysign(a, b)", "mnp.copysign(a, b)")
    yield from _case("torch.logaddexp2(a, b)", "x, y", "ops.logaddexp2(a, b)", "mnp.logaddexp2(a, b)")
    yield from _case("torch.float_power(a, 2)", "x", "ops.float_power(a, 2)", "mnp.float_power(a, 2)")
    yield from _case("torch.logcumsumexp(a, 1)", "rows", "ops.logcumsumexp(a, 1)")
    yield from _case("torch.nanmean(a, 1)", "rows", "ops.nanmean(a, 1)", "mnp.nanmean(a, 1)")
    yield from _case("torch.nanmedian(a, 1)[0]", "few", "ops.nanmedian(a, 1)[0]")
    yield from _case("torch.amax(a, 1)", "rows", "mnp.nanmax(a, 1)")
    yield from _case("torch.amin(a, 1)", "rows", "mnp.nanmin(a, 1)")
    yield from _case("torch.cumsum(a, 1)", "rows", "mnp.nancumsum(a, 1)")
    yield from _case("torch.msort(a)", "few", "ops.msort(a)")
    yield from _case("torch.trapz(a, dim=1)", "rows", "ops.trapz(a, dim=1)")
    yield from _case("F.pdist(a)", "few; rows", "ops.pdist(a)")
    yield from _case("F.lp_pool1d(a, 2, 2)", "signal", "ops.lp_pool1d(a, 2, 2)")
    yield from _case("F.silu(a[:, :2]) * a[:, 2:]", "rows", "ops.swiglu(a)")
    yield from _case("F.softshrink(a) * 1", "line", "ops.soft_shrink(a)")
    yield from _case("(a * a).sum() + (b * b).sum()", "x, y", "sum(ops.SquareSumAll()(a, b))")
    yield from _case("torch.kron(a, b)", "few, few", "ops.kron(a, b)", "mnp.kron(a, b)")
    yield from _case("torch.linalg.slogdet(a)[1]", "square", "ops.slogdet(a)[1]")
    yield from _case("torch.matrix_exp(a)", "square", "ops.matrix_exp(a)")
    yield from _case("torch.linalg.matrix_power(a, 3)", "square", "ops.matrix_power(a, 3)")


def _special() -> Iterator[Case]:
    yield from _case("torch.lgamma(a)", "positive; above one", "ops.lgamma(a)", "ops.Lgamma()(a)")
    yield from _case("torch.digamma(a)", "above one", "ops.digamma(a)", "ops.Digamma()(a)")
    yield from _case("torch.erfinv(a)", "unit", "ops.erfinv(a)", "ops.Erfinv()(a)")
    for name, other in {"bessel_i0": "BesselI0", "bessel_i0e": "BesselI0e", "bessel_i1": "BesselI1", "bessel_i1e": "BesselI1e"}.items():
        yield from _case(f"torch.special.{name.removeprefix('bessel_')}(a)", "divisors; few", f"ops.{name}(a)", f"ops.{other}()(a)")
    yield from _case("torch.special.polygamma(1, a)", "above one", "ops.polygamma(1, a)", "ops.Polygamma()(1, a)")
    yield from _case("torch.special.multigammaln(a + 2, 2)", "above one", "ops.mvlgamma(a + 2, 2)", "ops.Mvlgamma(2)(a + 2)")
    yield from _case("torch.special.gammainc(a * 0 + 2.5, b)", "=above one, above one", "ops.igamma(a * 0 + 2.5, b)", "ops.Igamma()(a * 0 + 2.5, b)")
    yield from _case("torch.special.gammaincc(a * 0 + 2.5, b)", "=above one, above one", "ops.igammac(a * 0 + 2.5, b)", "ops.Igammac()(a * 0 + 2.5, b)")
    yield from _case("torch.special.zeta(a * 0 + 3.0, b)", "=above one, above one", "ops.zeta(a * 0 + 3.0, b)", "ops.Zeta()(a * 0 + 3.0, b)")


def _factors() -> Iterator[Case]:
    yield from _case("torch.linalg.det(a)", "square", "ops.det(a)", "ops.MatrixDeterminant()(a)")
    yield from _case("torch.linalg.inv(a)", "square", "ops.inverse(a)", "ops.MatrixInverse()(a)")
    yield from _case("torch.linalg.solve(a, b)", "square, square", "ops.solve(a, b)", "ops.MatrixSolve()(a, b)", "ops.matrix_solve(a, b)")
    yield from _case("torch.linalg.solve_triangular(a + 3 * torch.eye(3), b, upper=True)", "square, square", "ops.solve_triangular(a + 3 * ops.eye(3), b)", "ops.MatrixTriangularSolve(lower=False)(a + 3 * ops.eye(3), b)")
    yield from _case("torch.linalg.cholesky(a @ a.T)", "square", "ops.cholesky(a @ a.T)", "ops.Cholesky()(a @ a.T)")
    yield from _case("torch.cholesky_inverse(torch.tril(a) + 3 * torch.eye(3))", "square", "ops.cholesky_inverse(ops.tril(a) + 3 * ops.eye(3))", "ops.CholeskyInverse()(ops.tril(a) + 3 * ops.eye(3))")
    yield from _case("torch.cholesky_solve(b, torch.tril(a) + 3 * torch.eye(3))", "square, square", "ops.cholesky_solve(b, ops.tril(a) + 3 * ops.eye(3))", "ops.CholeskySolve()(b, ops.tril(a) + 3 * ops.eye(3))")
    yield from _case("torch.logdet(a @ a.T)", "square", "ops.logdet(a @ a.T)")
    yield from _case("torch.linalg.svdvals(a)", "square", "ops.svd(a, compute_uv=False)", "ops.Svd(compute_uv=False)(a)[0]")
    yield from _case("torch.linalg.qr(a)[1] ** 2", "square", "ops.qr(a)[1] ** 2", "ops.Qr()(a)[1] ** 2")
    yield from _case("torch.linalg.eigvalsh(a + a.T)", "square", "ops.eigh(a + a.T)[0]", "ops.eigvalsh(a + a.T)")
    yield from _case("torch.linalg.pinv(a)", "square", "ops.pinv(a)")
    yield from _case("torch.linalg.pinv(a) @ b", "square, square", "ops.lstsq(a, b)", "ops.Lstsq()(a, b)")
    yield from _case("torch.linalg.cond(a)", "square", "ops.cond(a)")
    for p in (1, 2, 3):
        yield from _case(f"torch.linalg.vector_norm(a, {p}, 1)", "rows", f"ops.vector_norm(a, {p}, 1)")
    yield from _case("torch.linalg.vector_norm(a, 2, 1)", "square; wide rows", "ops.EuclideanNorm()(a, Tensor([1]))")
    yield from _case("torch.linalg.matrix_norm(a)", "rows", "ops.matrix_norm(a)")
    yield from _case("torch.renorm(a, 2, 0, 1.0)", "rows", "ops.renorm(a, 2, 0, 1.0)", "ops.Renorm(2, 0, 1.0)(a)")
    yield from _case("torch.stack([a ** 2, a, a * 0 + 1], 1)", "divisors", "ops.vander(a, 3)", "mnp.vander(a, 3)")
    yield from _case("a * 4.0", "x", "ops.ldexp(a, Tensor(2))")
    yield from _case("torch.sgn(a) + a", "x", "ops.sgn(a) + a")
    yield from _case("torch.where(a == 0, 0.0, a / torch.where(a == 0, 1.0, b))", "x, y", "ops.xdivy(a, b)", "ops.Xdivy()(a, b)")
    yield from _case("F.lp_pool2d(a, 2, 2)", "image", "ops.lp_pool2d(a, 2, 2)")
    yield from _case("F.max_pool2d(a, 2, 2)", "image; even image", "ops.MaxPoolWithArgmax(2, 2)(a)[0]", "ops.MaxPoolWithArgmaxV2(2, 2)(a)[0]")
    yield from _case("(2 * a + 1) * a + 3", "x", "mnp.polyval([2.0, 1.0, 3.0], a)")
    yield from _case("torch.var(a, 1, correction=0)", "rows", "mnp.nanvar(a, 1)")


CASES: list[Case] = [
    case
    for group in (_elementwise, _activations, _pairs, _reductions, _lengths, _windows, _choices, _losses, _rarely, _special, _factors)
    for case in group()
]
