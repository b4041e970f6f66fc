"""A bundle for a microcontroller as build systems of firmware take it: a Zephyr module, an Arduino library, an ESP-IDF
component, or under the names of MindSpore Lite's code generator.

The network's own files lie where the build system looks for them. The self-test stays where no build system finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msc.runtime.flags import FIRMWARE_FLAGS
from msc.runtime.program import CProgram
from msc.runtime.program_text import call_text
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean


@dataclass(frozen=True)
class Layout:
    """Where the network's files go, and what stands beside them; `@NAME@` is the model's name.

    `renamed` are new names of endings, such as `{"_weights.c": "weight.c"}`.
    """

    folder: str
    files: Mapping[str, str]
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


_ZEPHYR = """if(CONFIG_@MACRO@)
  zephyr_library_named(@NAME@)
  zephyr_library_sources(@SOURCES@)
  zephyr_library_compile_options(@FLAGS@)
  zephyr_include_directories(.)
endif()
"""
_ARDUINO = """name=@NAME@
version=1.0.0
author=msc @VERSION@
maintainer=msc @VERSION@
sentence=A neural network as C99.
paragraph=It allocates nothing and keeps no state between calls.
category=Data Processing
url=
architectures=*
includes=@NAME@.h
"""
_SKETCH = """// Calls the network on zeros, and prints how many microseconds that takes.
#define main call_once
@CALL@#undef main

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    const unsigned long start = micros();
    const int status = call_once();
    Serial.print(micros() - start);
    Serial.println(status ? " us: error" : " us");
    delay(1000);
}
"""
_ESP_IDF = """idf_component_register(SRCS @SOURCES@ INCLUDE_DIRS ".")
target_compile_options(${COMPONENT_LIB} PRIVATE @FLAGS@)
"""
_LITE = """cmake_minimum_required(VERSION 3.13)
project(net C)
add_library(net STATIC @SOURCES@)
target_include_directories(net PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(net PRIVATE @MARCH@ @FLAGS@)
target_link_libraries(net PUBLIC m)
"""

LAYOUTS: Mapping[str, Layout] = {
    "zephyr": Layout(
        "",
        {
            "zephyr/module.yml": "name: @NAME@\nbuild:\n  cmake: .\n  kconfig: zephyr/Kconfig\n",
            "zephyr/Kconfig": 'config @MACRO@\n\tbool "The neural network @NAME@"\n\tdefault y\n',
            "CMakeLists.txt": _ZEPHYR,
        },
    ),
    "arduino": Layout("src/", {"library.properties": _ARDUINO, "examples/@NAME@/@NAME@.ino": _SKETCH}),
    "esp-idf": Layout(
        "",
        {
            "CMakeLists.txt": _ESP_IDF,
            "idf_component.yml": 'version: "1.0.0"\ndescription: A neural network as C99, @NAME@.\n',
        },
    ),
    "lite": Layout(
        "src/",
        {"src/CMakeLists.txt": _LITE, "src/weight.h": '#include "@NAME@.h"\n'},
        {"_weights.c": "weight.c"},
    ),
}
"""By the name that a user gives."""


def check_layout(layout: str, program: CProgram) -> None:
    """Raise MSC0532 for a layout that there is not, or that a machine's bundles do not have."""
    if not layout:
        return
    if layout not in LAYOUTS:
        message = f"there is no layout '{layout}'"
        raise MscError(
            Diagnostic("MSC0532", message, help=did_you_mean(layout, LAYOUTS) or f"there are {', '.join(LAYOUTS)}")
        )
    if not program.boards:
        message = f"the layout '{layout}' is for microcontrollers, and {program.signature.target} is none"
        raise MscError(Diagnostic("MSC0532", message, help="name one, such as --march cortex-m4"))


def laid_out(program: CProgram, texts: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """The files of a plain bundle in another layout, by name."""
    name = program.name
    placed = dict[str, str]()
    own = {file for file in texts if file.startswith((f"{name}.", f"{name}_weights."))}
    for file, text in texts.items():
        ending = file.removeprefix(name)
        if file in own:
            placed[layout.folder + layout.renamed.get(ending, file)] = text
        elif file == "README.md":
            placed[file] = _without_selftest(text)
    sources = [file.removeprefix(layout.folder) for file in placed if file.endswith(".c")]
    signs = {
        "@NAME@": name,
        "@MACRO@": name.upper(),
        "@VERSION@": program.signature.msc_version,
        "@SOURCES@": " ".join(f'"{file}"' for file in sources),
        "@FLAGS@": " ".join(flag for flag in FIRMWARE_FLAGS if not flag.startswith("-O")),
        "@MARCH@": " ".join(program.march),
        "@CALL@": call_text(program.signature),
    }
    for file, text in layout.files.items():
        for sign, value in signs.items():
            file, text = file.replace(sign, value), text.replace(sign, value)
        placed[file] = text
    return placed


def _without_selftest(readme: str) -> str:
    """The page without what is told of the self-test, which a layout does not have."""
    lines = readme.splitlines(keepends=True)
    told = ("    make", "| `selftest.c`", "| `board.c`", "| `CMakeLists.txt`", "* **Cycles", "  for the self-test")
    return "".join(line for line in lines if not line.startswith(told))
