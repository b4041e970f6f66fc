"""What programs read, and how that changes: each thing has a setup, expressions that are numbers, and statements.

`#` stands for the number of the thing in its program, so that a program can have several of a kind.
"""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    """`state` are expressions for what calls themselves change."""

    setup: str
    reads: tuple[str, ...]
    changes: tuple[str, ...]
    state: str = "0"


_OBJECT = """
class Base#:
    b = 1.5
    def double(self): return self.k * 2
class K#(Base#):
    c = 2.5
    __match_args__ = ("k",)
    def __init__(self, k): self.k = k
    def method(self, n=1.0): return self.k + n
    @property
    def prop(self): return self.k + 3.0
    @staticmethod
    def fixed(): return 2.0
    @classmethod
    def of_class(cls): return cls.c
    def __float__(self): return float(self.k)
    def __len__(self): return int(self.k)
    def __contains__(self, v): return v == self.k
    def __getitem__(self, i): return self.k * (i + 1)
    def __iter__(self): return iter([self.k, self.k + 1])
    def __call__(self, v): return v + self.k
    def __add__(self, v): return self.k + v
    def __eq__(self, other): return self.k == getattr(other, "k", other)
    def __hash__(self): return 1
    def __str__(self): return str(self.k)
class Other#(K#):
    def method(self, n=1.0): return 11.0
    def __len__(self): return 6
o# = K#(2.0)
"""

THINGS = (
    Thing("g# = 2.0", ("g#", "g# * 2", "abs(g#)"), ("g# = 3.0", "g# = -1.0", "g# = 2")),
    Thing("z# = 0.0", ("np.copysign(1.0, z#) * 2", "z#"), ("z# = -0.0", "z# = float('nan')", "z# = 0.0")),
    Thing(
        "l# = [1.0, [2.0, 3.0], (4.0, [5.0])]",
        (
            "l#[0]",
            "sum(l#[1])",
            "len(l#)",
            "max(l#[1])",
            "l#[2][1][0]",
            "[v for v in l#[1]][-1]",
            "sorted(l#[1])[0]",
            "l#[1].index(3.0) if 3.0 in l#[1] else 9.0",
            "len(str(l#))",
            "sum(map(float, l#[1]))",
            "list(reversed(l#[1]))[0]",
        ),
        (
            "l#[0] = 5.0",
            "l#[1].append(4.0)",
            "l#[1][0] += 1",
            "l#[2][1][0] = 8.0",
            "l#.insert(0, 7.0)",
            "l#[1].reverse()",
        ),
    ),
    Thing(
        "big# = [1.0] * 20000", ("big#[5]", "sum(big#) / 20000", "max(big#)"), ("big#[5] = 4.0", "big#[19999] = 2.0")
    ),
    Thing(
        "d# = {'a': 1.0, 'n': {'b': 2.0}}",
        (
            "d#['a']",
            "d#.get('q', 3.0)",
            "sum(v for v in d#.values() if isinstance(v, float))",
            "d#['n']['b']",
            "len(d#)",
            "1.0 if 'q' in d# else 2.0",
            "len(list(d#))",
            "sum(len(k) for k, _ in d#.items())",
        ),
        ("d#['a'] = 4.0", "d#['q'] = 5.0", "d#['n']['b'] = 6.0", "d#.pop('a'); d#['a'] = 2.0", "d#.update(qq=1.0)"),
    ),
    Thing(
        _OBJECT,
        (
            "o#.k",
            "getattr(o#, 'k')",
            "vars(o#)['k']",
            "operator.attrgetter('k')(o#)",
            "copy.copy(o#).k",
            "o#.method()",
            "o#.prop",
            "float(o#)",
            "len(o#)",
            "(1.0 if o# else 2.0)",
            "(1.0 if 2.0 in o# else 3.0)",
            "o#[1]",
            "sum(o#)",
            "o#(1.0)",
            "(o# + 1.0)",
            "(1.0 if o# == 2.0 else 4.0)",
            "float(f'{o#}')",
            "float(str(o#))",
            "o#.double()",
            "o#.c",
            "o#.b",
            "K#.c",
            "Other#.b",
            "o#.fixed()",
            "o#.of_class()",
            "(o#.z if hasattr(o#, 'z') else 1.0)",
            "getattr(o#, 'z', 1.0)",
            "(1.0 if isinstance(o#, Other#) else 2.0)",
            "sorted([o#, K#(3.0)], key=lambda e: -e.k)[0].k",
            "max([o#], key=lambda e: e.k).k",
            "K#(1.0).method()",
            "float(len(type(o#).__name__))",
            "o#.__dict__['k']",
            "operator.methodcaller('method')(o#)",
            "list(map(lambda e: e.k, [o#]))[0]",
            "next(iter(o#))",
            "{o#: 1.0}[o#]",
            "max(o#)",
            "functools.reduce(lambda a, e: a + e.k, [o#], 0.0)",
        ),
        (
            "o#.k = 3.0",
            "o#.__dict__['k'] = 4.0",
            "setattr(o#, 'k', 5.0)",
            "K#.method = lambda self, n=1.0: 7.0",
            "o#.__class__ = Other#",
            "K#.prop = property(lambda self: 9.0)",
            "K#.__len__ = lambda self: 8",
            "o#.z = 6.0",
            "Base#.b = 4.0",
            "K#.c = 5.0",
            "Base#.double = lambda self: 6.0",
            "K#.fixed = staticmethod(lambda: 5.0)",
            "o#.method = lambda n=1.0: 12.0",
            "K#.__getitem__ = lambda self, i: 13.0",
            "K#.method.__defaults__ = (5.0,)",
            "K#.__float__ = lambda self: 14.0",
            "del K#.prop; K#.prop = 15.0",
            "K#.__init__ = lambda self, k: setattr(self, 'k', 2 * k)",
            "o# = K#(9.0)",
            "K#.__call__ = lambda self, v: 16.0",
            "K#.__eq__ = lambda self, v: True",
            "K#.z = 17.0",
            "K#.__bool__ = lambda self: False",
        ),
    ),
    Thing(
        "class S#:\n    __slots__ = ('k', 'm')\n    def __init__(self): self.k = 2.0\ns# = S#()",
        ("s#.k", "getattr(s#, 'm', 1.0)", "operator.attrgetter('k')(s#)", "(2.0 if hasattr(s#, 'm') else 1.0)"),
        ("s#.k = 3.0", "s#.m = 4.0", "s# = S#()"),
    ),
    Thing(
        "@dataclasses.dataclass\nclass D#:\n    k: float\n    more: list = dataclasses.field(default_factory=list)\n"
        "dc# = D#(2.0)\nother# = D#(2.0)",
        (
            "dc#.k",
            "dataclasses.asdict(dc#)['k']",
            "(1.0 if dc# == other# else 2.0)",
            "dataclasses.replace(dc#, more=[1]).k",
            "float(len(dc#.more))",
            "D#(3.0).k",
            "dataclasses.astuple(dc#)[0]",
            "float(len(repr(dc#)))",
            "(1.0 if [dc#] == [other#] else 2.0)",
            "(1.0 if dc# in [other#] else 2.0)",
        ),
        ("dc#.k = 3.0", "dc#.more.append(1.0)", "object.__setattr__(dc#, 'k', 44.0)", "other#.k = 7.0"),
    ),
    Thing(
        "def make#():\n    k = 2.0\n    held = [1.0]\n    def get(): return k + held[0]\n    def put(v):\n        nonlocal k\n"
        "        k = v\n    return get, put, held\nget#, put#, held# = make#()",
        ("get#()", "list(map(lambda h: h(), [get#]))[0]"),
        ("put#(5.0)", "held#[0] = 3.0", "get#, put#, held# = make#()", "get#.__closure__[1].cell_contents = 8.0"),
    ),
    Thing(
        "def h#(v=1.0, *, w=2.0): return v + w\ndef swap#(v=3.0, *, w=4.0): return v * w",
        ("h#()", "h#(2.0)", "h#(w=3.0)", "functools.partial(h#, 2.0)()", "sum(map(h#, [1.0]))"),
        (
            "h#.__defaults__ = (4.0,)",
            "h#.__kwdefaults__ = {'w': 5.0}",
            "h#.__code__ = swap#.__code__",
            "h# = swap#",
            "h#.__kwdefaults__['w'] = 9.0",
        ),
    ),
    Thing(
        "def mut#(seen=[]):\n    seen.append(1)\n    return float(len(seen))",
        ("mut#()",),
        ("mut#()",),
        "len(mut#.__defaults__[0])",
    ),
    Thing(
        "def inner#(k, m=1.0): return k + m\np# = functools.partial(inner#, 2.0, m=3.0)",
        ("p#()", "p#(m=5.0)"),
        ("p#.keywords['m'] = 4.0", "p#.__setstate__((inner#, (7.0,), {}, {}))", "inner#.__defaults__ = (6.0,)"),
    ),
    Thing(
        "base# = [2.0]\n@functools.lru_cache\ndef cached#(): return base#[0]",
        ("cached#()",),
        ("base#[0] = 3.0", "cached#.cache_clear()", "base#[0] = 4.0; cached#.cache_clear()"),
    ),
    Thing(
        "made# = []\ndef gen#():\n    made#.append(1)\n    yield 2.0\n    yield float(len(made#))",
        ("sum(gen#())", "list(gen#())[1]", "next(gen#())"),
        ("made#.append(1)", "made#.clear()"),
        "len(made#)",
    ),
    Thing(
        "entered# = []\n@contextlib.contextmanager\ndef cm#():\n    entered#.append(1)\n    yield float(len(entered#))\n"
        "def with#():\n    with cm#() as k:\n        return k",
        ("with#()",),
        ("entered#.append(1)",),
        "len(entered#)",
    ),
    Thing(
        "it# = iter(range(1000))",
        ("next(it#)", "float(next(it#))"),
        ("next(it#)", "it# = iter([7.0] * 50)"),
        "next(it#)",
    ),
    Thing(
        "a# = np.ones(3, np.float32)",
        (
            "a#[0]",
            "float(a#.sum())",
            "np.sum(a#)",
            "len(a#)",
            "a#.tolist()[1]",
            "float(Tensor(a#).sum())",
            "a#[1:][0]",
            "a#.max()",
        ),
        ("a#[0] = 5.0", "a#[1:] *= 3", "a# = np.zeros(3, np.float32)", "a#.fill(4)", "a#[:] = -0.0"),
    ),
    Thing("n# = np.full(5000, 2.0)", ("n#[4000]", "n#.mean()"), ("n#[4000] = 9.0", "n#[:] = 1.0")),
    Thing("oa# = np.array([2.0, None], dtype=object)", ("oa#[0]",), ("oa#[0] = 5.0",)),
    Thing(
        "arr# = np.ones(3, np.float32)\nt# = Tensor.from_numpy(arr#)",
        ("t#", "t#[0]", "t#.sum()", "t#.asnumpy()[0]", "(t# * 2)"),
        ("arr#[0] = 7", "t#[0] = 8", "t#.asnumpy()[1] = 9", "t# = Tensor(np.zeros(3, np.float32))"),
    ),
    Thing(
        "u# = Tensor(np.ones(3, np.float32)) * 2\nview# = u#.asnumpy()",
        ("u#", "u#.sum()", "float(u#[0])"),
        ("view#[0] = 7", "u#[0] = 8", "u#.asnumpy()[1] = 9"),
    ),
    Thing(
        "w# = msc.Parameter(np.ones(3, np.float32), name='w#')",
        ("w#", "w#.sum()", "(1.0 if w#.requires_grad else 2.0)", "float(len(w#.name))"),
        (
            "w#.set_data(Tensor(np.full(3, 4.0, np.float32)))",
            "w#[0] = 8",
            "w#.requires_grad = False",
            "w#.name = 'longer#'",
        ),
    ),
    Thing("ba# = bytearray(b'\\1\\2')", ("ba#[0]", "len(ba#)", "sum(ba#)"), ("ba#[0] = 9", "ba#.append(3)")),
    Thing("aa# = array.array('d', [1.0, 2.0])", ("aa#[0]", "sum(aa#)"), ("aa#[0] = 9.0", "aa#.append(3.0)")),
    Thing("buf# = bytearray(b'\\1\\2')\nmv# = memoryview(buf#)", ("mv#[0]", "sum(mv#)"), ("buf#[0] = 9", "mv#[1] = 7")),
    Thing(
        "q# = collections.deque([1.0, 2.0], maxlen=3)",
        ("q#[0]", "sum(q#)", "len(q#)", "list(q#)[-1]"),
        ("q#.append(5.0)", "q#.rotate(1)", "q#[0] = 4.0"),
    ),
    Thing(
        "st# = {1.0, 2.0}",
        ("sum(st#)", "len(st#)", "(1.0 if 3.0 in st# else 2.0)"),
        ("st#.add(3.0)", "st#.discard(1.0)"),
    ),
    Thing(
        "dd# = collections.defaultdict(float, a=1.0)\ncn# = collections.Counter('aab')\nod# = collections.OrderedDict(a=1.0, b=2.0)",
        ("dd#['a']", "cn#['a']", "next(iter(od#.values()))", "cn#.most_common(1)[0][1]", "sum(od#.values())"),
        ("dd#['a'] = 3.0", "cn#['a'] = 9", "od#.move_to_end('a')", "od#['a'] = 7.0"),
    ),
    Thing(
        "inner_d# = {'a': 1.0}\ncm_# = collections.ChainMap({}, inner_d#)\nmp# = types.MappingProxyType(inner_d#)\n"
        "ud# = collections.UserDict(inner_d#)\nkeys# = inner_d#.keys()",
        ("cm_#['a']", "mp#['a']", "ud#['a']", "len(keys#)", "len(mp#)", "sum(mp#.values())", "float(len(list(keys#)))"),
        ("inner_d#['a'] = 3.0", "cm_#['a'] = 4.0", "ud#['a'] = 5.0", "inner_d#['b'] = 2.0"),
    ),
    Thing(
        "ns# = types.SimpleNamespace(k=2.0)\nsame# = types.SimpleNamespace(k=2.0)",
        ("ns#.k", "(1.0 if ns# == same# else 3.0)", "getattr(ns#, 'q', 1.0)", "vars(ns#)['k']"),
        ("ns#.k = 3.0", "ns#.q = 4.0", "same#.k = 5.0", "ns#.__dict__.update(k=6.0)"),
    ),
    Thing(
        "class E#(enum.Enum):\n    A = 1.0\n    B = 2.0\ne# = E#.A",
        (
            "e#.value",
            "E#['B'].value",
            "E#(2.0).value",
            "len(E#)",
            "(1.0 if e# is E#.A else 2.0)",
            "getattr(e#, 'extra', 1.0)",
        ),
        ("e# = E#.B", "E#.A.extra = 5.0", "E#.A._value_ = 7.0"),
    ),
    Thing(
        "class Text#(str):\n    pass\nclass Num#(float):\n    pass\ntx# = Text#('ab'); tx#.k = 2.0\nnu# = Num#(1.5); nu#.k = 3.0",
        ("tx#.k", "nu#.k", "nu# * 1.0", "len(tx#)", "float(nu#)"),
        (
            "tx#.k = 4.0",
            "nu#.k = 5.0",
            "nu# = Num#(2.5); nu#.k = 3.0",
            "Num#.__mul__ = lambda a, b: 9.0",
            "Text#.__len__ = lambda a: 6",
        ),
    ),
    Thing(
        "NT# = collections.namedtuple('NT#', 'k m')\nnt# = NT#(1.0, [2.0])",
        ("nt#.k", "nt#.m[0]", "NT#(3.0, 1).k"),
        ("nt#.m[0] = 5.0", "nt# = NT#(4.0, [2.0])"),
    ),
    Thing(
        "os.environ['MSC_K#'] = '2'",
        ("float(os.environ['MSC_K#'])", "float(os.getenv('MSC_K#'))", "float(os.environ.get('MSC_K#', 1))"),
        ("os.environ['MSC_K#'] = '5'",),
    ),
    Thing(
        "file# = pathlib.Path(FOLDER, 'k#')\n_ = file#.write_text('2')\nnpy# = str(file#) + '.npy'\nnp.save(npy#, np.full(3, 2, 'f4'))",
        (
            "float(file#.read_text())",
            "float(open(file#).read())",
            "(2.0 if os.path.exists(str(file#) + 'q') else 1.0)",
            "Tensor(np.load(npy#))",
            "float(json.loads(file#.read_text()))",
            "float(len(os.listdir(FOLDER)))",
            "float(file#.stat().st_size)",
        ),
        ("file#.write_text('55')", "open(str(file#) + 'q', 'w').close()", "np.save(npy#, np.full(3, 5, 'f4'))"),
    ),
    Thing("cv# = contextvars.ContextVar('cv#', default=2.0)", ("cv#.get()",), ("cv#.set(5.0)",)),
    Thing(
        "class W#:\n    k = 2.0\nheld# = W#()\nwr# = weakref.ref(held#)\nwp# = weakref.proxy(held#)",
        ("wr#().k", "(2.0 if wr#() is None else 1.0)", "wp#.k"),
        ("held#.k = 5.0", "W#.k = 3.0"),
    ),
    Thing(
        "loc# = threading.local()\nloc#.k = 2.0",
        ("loc#.k", "getattr(loc#, 'q', 1.0)"),
        ("loc#.k = 5.0", "loc#.q = 3.0"),
    ),
    Thing(
        "mod# = types.ModuleType('mod#')\nmod#.k = 2.0\nexec('def f():\\n    return k', mod#.__dict__)",
        ("mod#.k", "mod#.f()", "getattr(mod#, 'q', 1.0)"),
        ("mod#.k = 5.0", "mod#.q = 3.0", "mod#.f = lambda: 7.0"),
    ),
    Thing(
        "random.seed(#)",
        ("random.random()", "random.randint(1, 9)", "np.random.rand()"),
        ("random.seed(7); np.random.seed(7)",),
    ),
    Thing(
        "decimal.getcontext().prec = 6",
        ("float(decimal.Decimal(1) / decimal.Decimal(3))",),
        ("decimal.getcontext().prec = 2", "decimal.getcontext().prec = 4"),
    ),
    Thing("tz# = [2.0]\nfor _ in range(5): tz# = [tz#]", ("tz#[0][0][0][0][0][0]",), ("tz#[0][0][0][0][0][0] = 4.0",)),
    Thing(
        "shadow# = [3.0, 4.0]",
        ("len(shadow#)", "sum(shadow#)", "abs(shadow#[0])"),
        ("len = lambda v: 9.0", "sum = lambda v: 8.0", "abs = lambda v: 7.0", "shadow#[0] = 1.0"),
    ),
    Thing(
        "class Lazy#:\n    def __init__(self): self.base = 2.0\n    def __getattr__(self, name):\n        if name.startswith('__'): raise AttributeError(name)\n"
        "        return self.base + len(name)\n    @functools.cached_property\n    def once(self): return self.base\nlz# = Lazy#()",
        ("lz#.any", "lz#.once", "lz#.base", "getattr(lz#, 'missing')"),
        (
            "lz#.base = 5.0",
            "lz#.any = 7.0",
            "lz#.__dict__.pop('once', None); lz#.base = 6.0",
            "Lazy#.__getattr__ = lambda self, name: 11.0",
        ),
    ),
    Thing(
        "class Desc#:\n    v = 2.0\n    def __get__(self, o, kind=None): return self.v\nclass Has#:\n    d = Desc#()\nhs# = Has#()",
        ("hs#.d", "Has#.d"),
        ("Desc#.v = 4.0", "vars(Has#)['d'].v = 5.0", "Has#.d = 6.0", "Desc#.__get__ = lambda self, o, kind=None: 8.0"),
    ),
    Thing(
        "class Meta#(type):\n    @property\n    def k(cls): return cls._k\nclass M#(metaclass=Meta#):\n    _k = 2.0",
        ("M#.k", "M#._k"),
        ("M#._k = 4.0", "Meta#.k = property(lambda cls: 5.0)"),
    ),
    Thing(
        "calls# = []\nclass Logs#:\n    @property\n    def k(self):\n        calls#.append(1)\n        return float(len(calls#))\nlg# = Logs#()",
        ("lg#.k", "getattr(lg#, 'k')"),
        ("calls#.append(1)", "Logs#.k = 3.0"),
        "len(calls#)",
    ),
    Thing(
        "@functools.singledispatch\ndef sd#(v): return 1.0\n@functools.wraps(sd#)\ndef wrapped#(v): return sd#(v) + 1.0",
        ("sd#(1.0)", "wrapped#(1.0)"),
        ("sd#.register(float, lambda v: 5.0)", "wrapped#.__wrapped__ = 1", "wrapped# = lambda v: 8.0"),
    ),
    Thing(
        "cfg# = {'fn': (lambda v: v + 1.0), 'list': [lambda v: v * 2.0]}",
        ("cfg#['fn'](2.0)", "cfg#['list'][0](2.0)"),
        (
            "cfg#['fn'] = lambda v: v + 5.0",
            "cfg#['list'][0] = lambda v: v * 7.0",
            "cfg#['fn'].__code__ = (lambda v: v + 9.0).__code__",
        ),
    ),
    Thing(
        "vf# = np.vectorize(lambda v: v + off#)\noff# = 2.0\nuf# = np.frompyfunc(lambda v: v * off#, 1, 1)",
        ("float(vf#(1.0))", "float(uf#(1.0))", "float(np.apply_along_axis(lambda r: r * off#, 0, np.ones(1))[0])"),
        ("off# = 5.0",),
    ),
    Thing(
        "rs# = np.random.RandomState(3)\nrng# = np.random.default_rng(3)",
        ("rs#.rand()", "rng#.random()"),
        ("rs#.seed(4)",),
    ),
)
