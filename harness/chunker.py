"""Cuts documents into chunks: windows of a fixed size, paragraphs, or sections under headings. Sizes are characters.

A chunk is document.text[start:end] and its id says so: "guide.md:1200-1600".
"""

import re

from harness.documents import Chunk

PARAGRAPH_END = re.compile(r"\r?\n(?:[ \t]*\r?\n)+")
HEADING_OR_FENCE = re.compile(r"^ {0,3}(?:(#{1,6})(?:[ \t]|\r?$)|(```+|~~~+))", re.MULTILINE)


def windows(start, end, size, overlap):
    """The (start, end) of windows over a stretch of text; the last one ends with it.

    windows(0, 10, 4, 1) is [(0, 4), (3, 7), (6, 10)].
    """
    cuts = [(start, min(start + size, end))]
    while cuts[-1][1] < end:
        start += size - overlap
        cuts.append((start, min(start + size, end)))
    return cuts


def fixed(text):
    """The whole text as one stretch."""
    return [(0, len(text))]


def paragraph(text):
    """The stretches between blank lines."""
    ends = [(match.start(), match.end()) for match in PARAGRAPH_END.finditer(text)]
    return list(zip([0, *(end for _, end in ends)], [*(start for start, _ in ends), len(text)]))


def heading(text):
    """The stretches that each begin with a Markdown heading (# to ######), and what stands before the first one.

    A line inside a code fence is no heading.
    """
    starts, fence = [0], ""
    for match in HEADING_OR_FENCE.finditer(text):
        marks, ticks = match.groups()
        if marks and not fence:
            starts.append(match.start())
        elif ticks and (not fence or ticks.startswith(fence)):
            fence = "" if fence else ticks
    return list(zip(starts, [*starts[1:], len(text)]))


SPLITS = {"fixed": fixed, "paragraph": paragraph, "heading": heading}


def chunk_documents(documents, split="fixed", size=800, overlap=0):
    """The chunks of all documents as {id: Chunk}, in document order.

    Stretches longer than size are cut into windows that share `overlap` characters; shorter ones stay whole and are never
    joined; white space alone is no chunk. split is "fixed", "paragraph" or "heading"; 0 <= overlap < size.
    """
    chunks = {}
    for document in documents.values():
        for stretch in SPLITS[split](document.text):
            for start, end in windows(*stretch, size, overlap):
                text = document.text[start:end]
                if text.strip():
                    name = f"{document.id}:{start}-{end}"
                    chunks[name] = Chunk(name, document.id, start, end, text)
    return chunks
