"""Writes blocks of a record into files: queries and score lists one a line, and the file's other sections untouched."""

import json
import os

from harness.files import read_text
from metrics import RecordError, find_blocks, parse_json, quote


def block_text(block, indent=""):
    """A block as JSON text: a member a line, and within `queries`, `models` and `datasets` an entry a line."""
    inner = indent + "  "
    members = [f"{inner}{compact(key)}: {_member_text(key, value, inner)}" for key, value in block.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def _member_text(key, value, indent):
    if key == "queries" and isinstance(value, list):
        return "[\n" + ",\n".join(f"{indent}  {compact(query)}" for query in value) + f"\n{indent}]"
    if key in ("models", "datasets", "scores") and isinstance(value, dict) and value:
        if key == "datasets":
            return block_text(value, indent)
        entries = [f"{indent}  {compact(name)}: {compact(entry)}" for name, entry in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    return block_text(value, indent) if isinstance(value, dict) and "scores" in value else compact(value)


def compact(value):
    """A value as JSON text on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def with_section(path, section, block):
    """The text of a file in which `section` is the block; what the file's other sections hold stays byte for byte."""
    sections = _members_as_text(read_text(path)) if _has_content(path) else {}
    sections[section] = block_text(block, "  ")
    return "{\n" + ",\n".join(f"  {compact(name)}: {text}" for name, text in sections.items()) + "\n}\n"


def _has_content(path):
    return os.path.isfile(path) and os.path.getsize(path) > 0


def check_replaced(path, section, kind):
    """Raise RecordError if writing a block of this kind to a file, or to a section of it, would lose anything but such a block."""
    if not _has_content(path):
        return
    value = parse_json(read_text(path), os.fspath(path))
    found = dict(find_blocks(value, os.fspath(path))[0])
    if section is None:
        _check_same_kind(path, found, (), value, kind)
    elif () in found or not isinstance(value, dict):
        raise RecordError(f"{path}: holds {_kind(found.get((), value))}, not sections; write to another file, or without --section")
    elif section in value:
        _check_same_kind(f"{path}: {section}", found, (section,), value[section], kind)


def _check_same_kind(place, found, path, value, kind):
    """Nothing but a block of the same kind may be replaced. found: {path: block} of the file."""
    inside = [inner[len(path)] for inner in found if inner != path and inner[:len(path)] == path]
    if inside:
        shown = ", ".join(dict.fromkeys(inside))
        what = "name one with --section, or remove the file" if not path else "name another section"
        raise RecordError(f"{place}: holds the section{'s' * (len(inside) > 1)} {shown}; {what}")
    if path not in found or _kind(value) != kind:
        raise RecordError(f"{place}: holds {_kind(value)}, which {kind} would replace; write to another place, or remove it first")


def _kind(block):
    """A block's kind, as messages name it."""
    if not isinstance(block, dict):
        return quote(block)
    kinds = {"queries": "a panel", "checks": "checks", "datasets": "a public table"}
    return next((kind for key, kind in kinds.items() if key in block), "an object that is no block of a record")


def _members_as_text(text):
    """{key: its value's text} of a valid JSON object."""
    decoder, sections, place = json.JSONDecoder(), {}, text.index("{") + 1
    while True:
        while text[place] in " \t\r\n,":
            place += 1
        if text[place] == "}":
            return sections
        key, place = decoder.raw_decode(text, place)
        place = text.index(":", place) + 1
        while text[place] in " \t\r\n":
            place += 1
        _, end = decoder.raw_decode(text, place)
        sections[key], place = text[place:end], end
