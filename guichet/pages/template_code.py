"""How templates become code. A page has a few hundred pieces, so what is done for each of them is what it costs.

Compiling takes most of the time of the first page after a start, so compiled templates stand in files, as Python keeps
its modules: in the `__pycache__` of their package, where Python may write its own.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any, Final, cast

import markupsafe
from jinja2 import Environment, Template, nodes
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Macro
from jinja2.visitor import NodeTransformer
from markupsafe import Markup, escape

#: What `escape` does to a text, without an object of its own for the result. It has no public name.
_escape_text: Final[Callable[[str], str]] = getattr(markupsafe, "_escape_inner", escape)

#: Our own text, or an escaped one, as markup: without looking for `__html__`, as `Markup` does for each.
as_markup: Final[Callable[[str], Markup]] = partial(str.__new__, Markup)


def escaped(value: Any) -> Any:
    """As `markupsafe.escape`, but without a new object for each piece of a page."""
    kind = type(value)
    if kind is str:
        return _escape_text(value)
    if kind is Markup:
        return value
    return str(value) if kind is int else escape(value)


class _Template(Template):
    @classmethod
    def from_code(cls, environment: Environment, code: CodeType, known: Any, uptodate: Any = None) -> Template:
        """`known`: the names that all templates know, a plain dictionary: each page looks through them four times."""
        template = super().from_code(environment, code, dict(known), uptodate)
        template.root_render_func.__globals__.update(escape=escaped, Macro=_Macro)
        return template


class _Macro(Macro):
    def __call__(self, *args: Any, **values: Any) -> str:
        """With all its arguments in their order, as most are called, there is nothing to sort out."""
        if values or self.caller or len(args) != len(self.arguments):
            return super().__call__(*args, **values)
        return as_markup(self._func(*args))


class _Code(CodeGenerator):
    """A template and each of its blocks collect their pieces in a list, as macros do. Jinja hands over each piece by
    itself, from the block to the template around it and from there to the caller."""

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        if frame.rootlevel or frame.block_frame:
            self.buffer(frame)

    def leave_frame(self, frame: Frame, with_python_scope: bool = False) -> None:
        if frame.rootlevel or frame.block_frame:
            self.writeline(f"yield concat({frame.buffer})")
        super().leave_frame(frame, with_python_scope)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802 - as Jinja names the node
        """`view.name` is an attribute; an item of a dictionary is `view["name"]`."""
        self.visit(node.node, frame)
        self.write(f".{node.attr}")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        """Without checking whether the function takes the context: none of ours does."""
        self.visit(node.node, frame)
        self.write("(")
        for argument in (*node.args, *node.kwargs):
            self.visit(argument, frame)
            self.write(", ")
        self.write("caller=caller)" if forward_caller else ")")


class TemplateEnvironment(Environment):
    """Of one language. What is the same in each page is written into its template when that is compiled: what
    `_("key")` says without values, of which a page has two hundred, and `parts.icon("name")`."""

    template_class = _Template
    code_generator_class = _Code

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._loaded: dict[Any, Template] = {}

    def get_template(self, name: Any, *args: Any) -> Template:
        """Templates are never reloaded, so no lock and no order of use is needed."""
        template = self._loaded.get(name)
        if template is None:
            template = self._loaded[name] = super().get_template(name, *args)
        return template

    def compile(self, source: Any, *args: Any, **kwargs: Any) -> Any:
        return super().compile(_Constants(self).visit(self.parse(source, *args[:2])), *args, **kwargs)

    def constant(self, function: str, args: list[Any]) -> Markup:
        called: Any = self.globals.get(function) or getattr(self.get_template("_parts.html").module, function)
        return cast(Markup, called(*args))


class _Constants(NodeTransformer):
    def __init__(self, environment: TemplateEnvironment) -> None:
        self._environment = environment

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802 - as Jinja names the node
        match node:
            case nodes.Call(
                node=nodes.Name(name="_" as name) | nodes.Getattr(node=nodes.Name(name="parts"), attr="icon" as name),
                args=args,
                kwargs=[],
            ) if all(isinstance(arg, nodes.Const) for arg in args):
                return nodes.Const(self._environment.constant(name, [arg.as_const() for arg in args]))
        return self.generic_visit(node)


def fingerprint(folders: Iterable[Path], code: Iterable[str]) -> bytes:
    """Of all that a compiled template follows from, but for its texts: all templates, since one may be written into
    another, and `code`, the files that compile them."""
    files = [*(file for folder in folders for file in sorted(folder.rglob("*.html"))), *map(Path, code)]
    return hashlib.sha256(version("jinja2").encode() + b"".join(file.read_bytes() for file in files)).digest()


class CompiledTemplates(BytecodeCache):
    """Those of one language, whose `texts` are written into them."""

    def __init__(self, folder: Path, language: str, texts: Mapping[str, str], compiled_from: bytes) -> None:
        self._folder = folder / "__pycache__"
        self._language = language
        self._salt = hashlib.sha256(compiled_from + repr(sorted(texts.items())).encode()).hexdigest()

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(self._salt + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError), self._file(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        part = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            part.write_bytes(bucket.bytecode_to_string())
            part.replace(file)

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{self._language}-{bucket.key}.template"
