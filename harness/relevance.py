"""Says which chunks of an index are relevant to a question: the named ones, or those that wholly hold one of its spans."""

from typing import NamedTuple


class Relevance(NamedTuple):
    """The relevant chunk ids of one question in one index, and the spans that no chunk holds, each with the reason."""

    chunks: tuple
    cut: tuple  # of (Span, reason)


class ChunkIndex:
    """The chunks of an index, ready to be asked for spans. chunks is {id: Chunk} or None where nobody knows them."""

    def __init__(self, chunks):
        self.by_document = {}
        self.chunks = chunks or {}
        for chunk in self.chunks.values():
            if chunk.doc is not None:
                self.by_document.setdefault(chunk.doc, []).append(chunk)

    def relevance(self, item):
        """The Relevance of an item: by its spans where the chunks have positions, else by its chunk ids."""
        if not item.spans or not self.by_document:
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
