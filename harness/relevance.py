"""Says which chunks of an index are relevant to a question: the named ones, or those that wholly hold one of its spans."""

from typing import NamedTuple

SPANS, IDS = "spans", "chunk ids"  # what relevance can be by


class Relevance(NamedTuple):
    """The relevant chunk ids of one question in one index, and the spans that no chunk holds, each with the reason."""

    chunks: tuple
    cut: tuple  # of (Span, reason)


class ChunkIndex:
    """The chunks of an index, ready to be asked for spans. chunks is {id: Chunk} or None where nobody knows them;
    name says where they come from."""

    def __init__(self, chunks, name="chunks"):
        self.name, self.by_document = name, {}
        self.chunks = chunks or {}
        for chunk in self.chunks.values():
            if chunk.doc is not None:
                self.by_document.setdefault(chunk.doc, []).append(chunk)

    def by(self, item):
        """What decides the relevance of an item: its spans where the chunks have positions, else its chunk ids."""
        return SPANS if item.spans and self.by_document else IDS

    def relevance(self, item):
        """The Relevance of an item."""
        if self.by(item) == IDS:
            return Relevance(item.chunks, ())
        found, cut = {}, []
        for span in item.spans:
            near = [chunk for chunk in self.by_document.get(span.doc, ()) if chunk.start < span.end and span.start < chunk.end]
            holding = [chunk.id for chunk in near if chunk.start <= span.start and span.end <= chunk.end]
            found.update(dict.fromkeys(holding))
            if not holding:
                cut.append((span, "a chunk boundary cuts it" if near else "no chunk covers it"))
        return Relevance(tuple(found), tuple(cut))

    def text(self, name):
        """The text of a chunk, or an empty one."""
        return self.chunks[name].text if name in self.chunks else ""


def basis(golden, index):
    """What relevance is by in a run: "spans", "chunk ids", or "spans (30) and chunk ids (6)" with numbers of questions.

    Two runs of one golden set on different bases count different things as relevant, so they are not comparable.
    """
    kinds = [index.by(item) for item in golden.items if item.answerable]
    parts = {kind: kinds.count(kind) for kind in (SPANS, IDS) if kind in kinds}
    return next(iter(parts)) if len(parts) == 1 else " and ".join(f"{kind} ({count})" for kind, count in parts.items())


def unused(golden, index):
    """A sentence on the questions that have spans and chunk ids both, as only one of the two is used; None without any."""
    both = [index.by(item) for item in golden.items if item.answerable and item.spans and item.chunks]
    if not both:
        return None
    have = f"{len(both)} questions have spans and chunk ids" if len(both) > 1 else "1 question has spans and chunk ids"
    if both[0] == SPANS:
        return f"{have}: the spans decide what is relevant, as the places of the chunks are known; the chunk ids are not used."
    return (f"{have}: the chunk ids decide what is relevant, as no places of chunks are given (--chunks with doc, start and end);"
            " the spans are not used.")
