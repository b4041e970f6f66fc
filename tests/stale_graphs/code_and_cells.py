"""Further things: code that has effects, what libraries look at, and Cells."""

# ruff: noqa: E501

from __future__ import annotations

from tests.stale_graphs.things import Thing

EFFECTS = (
    Thing(
        "ea# = np.zeros(3, np.float32)\ndef bump#():\n    ea#[0] += 1\n    return float(ea#[0])",
        ("bump#()",),
        ("ea#[0] = 9", "ea# = np.ones(2)"),
        "ea#.tolist()",
    ),
    Thing(
        "el# = [1.0]\ndef grow#():\n    el#.append(2.0)\n    return el#[-1] + len(el#)",
        ("grow#()",),
        ("el#.clear(); el#.append(1.0)", "el#[0] = 9.0"),
        "list(el#)",
    ),
    Thing(
        "ed# = {'n': 1.0, 'k': 2.0}\ndef count#():\n    ed#['n'] += 1\n    return ed#['n'] * ed#['k']",
        ("count#()",),
        ("ed#['k'] = 3.0", "ed#['n'] = 0.0", "ed#['z'] = 1.0"),
        "dict(ed#)",
    ),
    Thing(
        "ew# = {'k': 2.0}\ndef write#():\n    ew#['n'] = 1.0\n    return ew#['k']",
        ("write#()",),
        ("ew#['k'] = 3.0", "ew#.pop('n', 0)"),
        "dict(ew#)",
    ),
    Thing(
        "class C#:\n    n = 0\n    def __init__(self): self.m = 0\n    def step(self):\n        self.m += 1\n        C#.n += 1\n        return float(self.m)\nco# = C#()",
        ("co#.step()", "co#.step() + C#.n"),
        ("co#.m = 5", "C#.n = 7"),
        "(co#.m, C#.n)",
    ),
    Thing(
        "class Sets#:\n    def __init__(self): self._k = 1.0\n    @property\n    def k(self): return self._k\n    @k.setter\n    def k(self, v): self._k = v * 2\n"
        "class Any#:\n    def __setattr__(self, name, v): self.__dict__[name] = v + 1\nse# = Sets#(); an# = Any#()\n"
        "def put_#():\n    se#.k = se#.k + 1\n    an#.k = 1.0\n    return se#.k + an#.k",
        ("put_#()",),
        ("se#._k = 3.0", "Sets#.k = property(lambda s: 7.0, lambda s, v: None)"),
        "(se#._k, an#.k)",
    ),
    Thing(
        "class Ctx#:\n    n = 0\n    def __enter__(self):\n        self.n += 1\n        return self\n    def __exit__(self, *a): self.n += 10\ncx# = Ctx#()\n"
        "def enter#():\n    with cx# as c:\n        return float(c.n)",
        ("enter#()",),
        ("cx#.n = 3", "Ctx#.__enter__ = lambda self: types.SimpleNamespace(n=5)"),
        "cx#.n",
    ),
    Thing(
        "total# = 0.0\ndef add#():\n    global total#\n    total# += 1.0\n    return total#\n"
        "def nest#():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return float(n)\n    return up\nup# = nest#()",
        ("add#()", "up#()"),
        ("total# = 5.0", "up# = nest#()"),
        "(total#, up#.__closure__[0].cell_contents)",
    ),
    Thing(
        "bb# = bytearray(b'ab')\nss# = {1.0}\nqq# = collections.deque([1.0])\noo# = collections.OrderedDict(a=1.0, b=2.0)\n"
        "def many#():\n    bb#.append(1); ss#.add(float(len(ss#))); qq#.append(2.0); oo#.move_to_end('a')\n    return float(len(bb#)) + len(ss#) + len(qq#)",
        ("many#()",),
        ("bb#.clear()", "ss#.clear()", "qq#.clear()"),
        "(bytes(bb#), sorted(ss#), list(qq#), list(oo#))",
    ),
    Thing(
        "ct# = Tensor(np.zeros(3, np.float32))\nhold# = [ct#]\ndef into#(v):\n    ct#[0] = v.sum()\n    hold#[0] = v * 2\n    return ct#[0] + hold#[0]",
        ("into#(x)",),
        ("ct#[1] = 4.0", "hold#[0] = 1"),
        "(ct#.asnumpy().tolist(), np.asarray(hold#[0]).tolist())",
    ),
    Thing(
        "rg# = []\ndef deco#(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n        rg#.append(1)\n        return f(*a, **k) + len(rg#)\n    return inner\n@deco#\ndef decorated#(): return 1.0",
        ("decorated#()",),
        ("rg#.clear()", "decorated#.__wrapped__ = None"),
        "len(rg#)",
    ),
)

MORE = (
    Thing(
        "fr# = fractions.Fraction(1, 2)\npat# = re.compile('a+')\nwords# = ['a', 'bb']",
        (
            "float(fr#)",
            "float(fr# + 1)",
            "float(len(pat#.sub('b', 'caat')))",
            "float(len(','.join(words#)))",
            "float(len(' '.join(sorted(words#))))",
            "float(len('%s' % words#[0]))",
            "float(len('{}'.format(words#)))",
            "float(len(str(words#)))",
        ),
        ("fr# = fractions.Fraction(1, 3)", "pat# = re.compile('a')", "words#.append('ccc')", "words#[0] = 'longer'"),
    ),
    Thing(
        "rows# = [[1.0, 2.0], [3.0, 4.0]]",
        (
            "sum(itertools.chain(*rows#))",
            "sum(a * b for a, b in zip(*rows#))",
            "float(np.array(rows#).sum())",
            "float(np.stack([np.array(r) for r in rows#])[1, 0])",
            "dict(enumerate(rows#))[1][0]",
            "[r[0] for r in rows# if r[1] > 0][-1]",
            "max(rows#, key=len)[0]",
            "sum(map(sum, rows#))",
            "rows#[-1][-1]",
            "min(rows#)[0]",
            "sorted(rows#, key=lambda r: -r[0])[0][1]",
            "float(len(copy.deepcopy(rows#)[0]))",
            "statistics.mean(rows#[0])",
            "math.prod(rows#[0])",
            "functools.reduce(operator.add, rows#[0])",
            "(1.0 if rows#[0] == [1.0, 2.0] else 2.0)",
            "operator.itemgetter(1)(rows#)[0]",
            "(*rows#[0], 5.0)[1]",
        ),
        (
            "rows#[1][0] = 9.0",
            "rows#.append([7.0, 8.0])",
            "rows#[0].pop(); rows#[0].append(5.0)",
            "rows#[0], rows#[1] = rows#[1], rows#[0]",
        ),
    ),
    Thing(
        "class Vec#(list):\n    def top(self): return self[-1]\nclass Map#(dict):\n    def __missing__(self, k): return 5.0\nve# = Vec#([1.0, 2.0]); ve#.k = 3.0\nma# = Map#(a=1.0)",
        ("ve#.top()", "ve#.k", "ve#[0]", "sum(ve#)", "len(ve#)", "ma#['a']", "ma#['q']", "float(len(ma#))"),
        (
            "ve#.append(4.0)",
            "ve#.k = 6.0",
            "Vec#.top = lambda self: 7.0",
            "ma#['q'] = 8.0",
            "Map#.__missing__ = lambda self, k: 9.0",
            "Vec#.__len__ = lambda self: 11",
            "ve#[0] = 13.0",
        ),
    ),
    Thing(
        "class A#:\n    def who(self): return 1.0\nclass B#(A#):\n    def who(self): return super().who() + self.w\n    w = 2.0\nclass Mix#:\n    def who(self): return 30.0\nab# = B#()",
        ("ab#.who()", "A#.who(ab#)", "super(B#, ab#).who()"),
        ("A#.who = lambda self: 5.0", "B#.w = 3.0", "B#.__bases__ = (Mix#, A#)", "del B#.who", "ab#.w = 4.0"),
    ),
    Thing(
        "import abc\nclass Shape#(abc.ABC):\n    @abc.abstractmethod\n    def area(self): pass\nclass Sq#(Shape#):\n    k = 2.0\n    def area(self): return self.k ** 2\nclass Free#: pass\nsq# = Sq#(); free# = Free#()",
        (
            "sq#.area()",
            "(1.0 if isinstance(free#, Shape#) else 2.0)",
            "(1.0 if isinstance(sq#, Shape#) else 2.0)",
            "(1.0 if issubclass(Free#, Shape#) else 2.0)",
        ),
        ("Sq#.k = 3.0", "Shape#.register(Free#)", "Sq#.area = lambda self: 7.0", "sq#.k = 5.0"),
    ),
    Thing(
        "match_# = {'kind': 'a', 'v': [1.0, 2.0]}\ndef matched#():\n    match match_#:\n        case {'kind': 'a', 'v': [first, *_]}: return first\n        case {'kind': 'b'}: return 8.0\n        case _: return 9.0",
        ("matched#()",),
        ("match_#['kind'] = 'b'", "match_#['v'][0] = 4.0", "match_#.pop('kind', 0)"),
    ),
    Thing(
        "class Er#(Exception):\n    code = 2.0\nfail# = [True]\ndef tried#():\n    try:\n        if fail#[0]: raise Er#('x')\n        return 1.0\n    except Er# as e:\n        return e.code + len(e.args)",
        ("tried#()",),
        ("fail#[0] = False", "Er#.code = 5.0", "fail# = []"),
    ),
    Thing(
        "mpath# = pathlib.Path(FOLDER, 'smod#.py')\n_ = mpath#.write_text('K = 2.0\\ndef f(): return K\\n')\n"
        "spec# = importlib.util.spec_from_file_location('smod#', mpath#)\nsmod# = importlib.util.module_from_spec(spec#)\nsys.dont_write_bytecode = True\nspec#.loader.exec_module(smod#)\nfrom_# = smod#.f",
        ("smod#.f()", "smod#.K", "from_#()"),
        (
            "mpath#.write_text('K = 7.0\\ndef f(): return K * 10\\n')",
            "mpath#.write_text('K = 3.0\\n\\ndef f(): return K + 1000\\n'); spec#.loader.exec_module(smod#)",
            "smod#.K = 5.0",
            "smod#.f = lambda: 9.0",
        ),
    ),
    Thing(
        "msc.set_context(mode=1)\nlogs# = logging.getLogger(__name__ + '#')",
        (
            "float(logs#.level)",
            "float(logs#.isEnabledFor(10))",
            "float(sys.getrecursionlimit())",
            "float(len(sys.argv))",
        ),
        ("logs#.setLevel(10)", "logs#.setLevel(30)"),
    ),
    Thing(
        "np.seterr(all='ignore')\nfs# = frozenset({1.0})\nbt# = b'ab'\nrn# = range(3)\nsl# = slice(0, 2)\ncp# = 1 + 2j",
        ("sum(fs#)", "bt#[0]", "sum(rn#)", "float(len([1, 2, 3][sl#]))", "cp#.imag", "abs(cp#)", "rn#.stop"),
        ("fs# = frozenset({2.0})", "bt# = b'cb'", "rn# = range(4)", "sl# = slice(0, 1)", "cp# = 3 + 4j"),
    ),
    Thing(
        "class Proxy#:\n    def __init__(self, t): object.__setattr__(self, '_t', t)\n    def __getattribute__(self, n): return getattr(object.__getattribute__(self, '_t'), n)\ntarget# = types.SimpleNamespace(k=2.0)\npx# = Proxy#(target#)",
        ("px#.k",),
        ("target#.k = 5.0", "Proxy#.__getattribute__ = lambda self, n: 8.0"),
    ),
    Thing(
        "class It#:\n    def __init__(self): self.n = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.n += 1\n        if self.n % 4 == 0: raise StopIteration\n        return float(self.n)\nitr# = It#()",
        ("sum(itr#)", "next(itr#, 9.0)", "sum([v for v in itr#])"),
        ("itr#.n = 0", "It#.__next__ = lambda self: (_ for _ in ()).throw(StopIteration)"),
        "itr#.n",
    ),
    Thing(
        "struct_ = np.zeros(2, dtype=[('a', 'f4'), ('b', 'i4')])\nsa# = struct_.copy()\nnd# = np.float32(2.0)\nba_# = np.ones((2, 2))[::2]\nvw# = ba_#.T",
        (
            "float(sa#['a'][0])",
            "nd# * 1",
            "float(ba_#[0, 0])",
            "float(vw#[0, 0])",
            "float(np.asarray(vw#).sum())",
            "float(ba_#.shape[0])",
        ),
        ("sa#['a'][0] = 3", "nd# = np.float32(-0.0)", "ba_#[0, 0] = 5", "vw#[0, 0] = 6"),
    ),
)

CELLS = (
    Thing(
        "class Net#(nn.Cell):\n    scale = 2.0\n    def __init__(self):\n        super().__init__()\n        self.k = 2.0\n        self.items = [1.0]\n"
        "        self.act = nn.ReLU()\n        self.layers = nn.CellList([nn.ReLU()])\n        self.seq = nn.SequentialCell([nn.ReLU()])\n"
        "        self.p = msc.Parameter(np.ones(3, np.float32), name='p')\n    def helper(self, v): return v + self.k\n"
        "    def construct(self, v):\n        for layer in self.layers:\n            v = layer(v)\n        v = self.seq(self.act(v)) * self.scale\n"
        "        return self.helper(v) * self.items[0] * self.p + len(self.layers) + len(self.trainable_params())\n"
        "class Net2#(Net#):\n    def construct(self, v): return v * 9\nnet# = Net#()",
        (
            "net#(x)",
            "net#.helper(x)",
            "net#.k",
            "float(len(net#.layers))",
            "net#.layers[0](x)",
            "net#.act(x)",
            "net#.seq(x)",
            "float(len(net#.trainable_params()))",
            "net#.p",
            "float(len(net#.cells()))",
            "float(len(list(net#.parameters_and_names())))",
            "(1.0 if net#.training else 2.0)",
        ),
        (
            "net#.k = 3.0",
            "vars(net#)['k'] = 4.0",
            "net#.__dict__.update(k=6.0)",
            "net#.items[0] = 5.0",
            "net#.layers[0] = nn.Sigmoid()",
            "net#.layers.append(nn.Sigmoid())",
            "net#.layers.insert(0, nn.Tanh())",
            "net#.act = nn.Sigmoid()",
            "net#.seq[0] = nn.Tanh()",
            "net#.seq.append(nn.Tanh())",
            "net#.act.register_forward_hook(lambda c, i, o: o * 3)",
            "net#.register_forward_pre_hook(lambda c, i: (i[0] * 3,))",
            "h# = net#.register_forward_hook(lambda c, i, o: o * 5)",
            "globals().get('h#') and h#.remove()",
            "net#.construct = lambda v: v * 7",
            "Net#.construct = lambda self, v: v * 11",
            "net#.__class__ = Net2#",
            "Net#.scale = 4.0",
            "Net#.helper = lambda self, v: v * 13",
            "net#.set_train()",
            "net#.p.set_data(Tensor(np.full(3, 4.0, np.float32)))",
            "net#.p.requires_grad = False",
            "net#.extra = nn.ReLU()",
            "net# = Net#()",
            "net#.layers.extend([nn.Sigmoid()])",
            "del net#.layers[0]",
            "nn.ReLU.construct = (lambda old: lambda self, v: old(self, v))(nn.ReLU.construct)",
            "net#.p[0] = 5.0",
            "net#.helper = lambda v: v * 15",
            "net#.act.construct = lambda v: v * 3",
        ),
    ),
    Thing(
        "drop# = nn.Dropout(p=0.5)\nnorm# = nn.LayerNorm((3,))\ndense# = nn.Dense(3, 3, weight_init='ones', bias_init='zeros')",
        ("drop#(x * 0)", "norm#(x)", "dense#(x)"),
        (
            "norm#.epsilon = 0.5",
            "dense#.weight.set_data(Tensor(np.full((3, 3), 2.0, np.float32)))",
            "dense#.bias[0] = 3.0",
            "dense#.activation = nn.ReLU()",
            "norm#.gamma.set_data(Tensor(np.full(3, 2.0, np.float32)))",
        ),
    ),
    Thing(
        "k_# = [2.0]\nhooked# = nn.ReLU()\nhk# = hooked#.register_forward_hook(lambda c, i, o: o * k_#[0])\n"
        "fn_# = nn.SequentialCell([nn.ReLU()])\nacted# = nn.Dense(3, 3, weight_init='ones', bias_init='zeros', activation=lambda v: v * k_#[0])",
        ("hooked#(x)", "acted#(x)"),
        ("k_#[0] = 5.0", "hk#.remove()", "k_# = [7.0]"),
    ),
)
