"""What counts as a verdict; the replies are in data/judge/replies.json."""

import json
import unittest

from harness.verdicts import NoVerdict, find_quote, fold, is_refusal, load_rubric, parse_verdict
from metrics import RecordError
from tests import DATA, EXTERNAL_DATA, TestCase

RUBRIC = load_rubric()
REPLIES = json.loads((DATA / "judge" / "replies.json").read_text(encoding="utf-8"))
CHUNKS = [(chunk["id"], chunk["text"]) for chunk in REPLIES["chunks"]]


def reason(reply, refused=False, chunks=CHUNKS):
    """Why a reply is no verdict, or None where it is one."""
    try:
        parse_verdict(reply, chunks, refused, RUBRIC)
    except NoVerdict as error:
        return error.reason
    return None


class Replies(TestCase):
    def test_accepted(self):
        for case in REPLIES["accepted"]:
            with self.subTest(case["name"]):
                verdict = parse_verdict(case["reply"], CHUNKS, False, RUBRIC)
                self.assertEqual((verdict["faithfulness"], verdict["relevance"], verdict["chunk"]), (2, 1, case["chunk"]))
                self.assertIs(type(verdict["faithfulness"]), int)

    def test_refused(self):
        for case in REPLIES["refused"]:
            with self.subTest(case["name"]):
                self.assertEqual(reason(case["reply"]), case["reason"])

    def test_long_replies_end(self):
        self.assertEqual(reason("[" * 100_000), "reply too long")
        self.assertEqual(reason("[" * 15_000), "not one JSON object")
        self.assertEqual(reason('{"faithfulness": ' + "9" * 5_000 + "}"), "not one JSON object")

    def test_an_empty_quote_stands_for_a_refusal_only(self):
        reply = '{"faithfulness": 2, "relevance": 2, "evidence": "", "chunk": ""}'
        self.assertIsNone(parse_verdict(reply, CHUNKS, True, RUBRIC)["chunk"])
        self.assertEqual(reason(reply, refused=False), "quote empty")
        self.assertEqual(reason(reply.replace('"evidence": ""', '"evidence": "made up"'), refused=True), "quote not in a chunk")

    def test_every_refusal_says_what_it_found(self):
        with self.assertRaises(NoVerdict) as caught:
            parse_verdict('{"faithfulness": "2/2"}', CHUNKS, False, RUBRIC)
        self.assertIn('score not an integer: faithfulness: expected an integer 0 to 2, got "2/2"', str(caught.exception))
        self.assertTrue(caught.exception.reply and caught.exception.again)

    def test_a_quote_in_two_chunks_belongs_to_the_one_that_is_named(self):
        chunks = [("a", "It is 308."), ("b", "So it is: It is 308.")]
        reply = '{"faithfulness": 0, "relevance": 0, "evidence": "It is 308.", "chunk": "%s"}'
        self.assertEqual(find_quote("It is 308.", chunks), ["a", "b"])
        self.assertEqual(parse_verdict(reply % "b", chunks, False, RUBRIC)["chunk"], "b")
        self.assertEqual(parse_verdict(reply % "", chunks, False, RUBRIC)["chunk"], "a")

    def test_half_a_surrogate_pair_is_no_accident(self):
        self.assertEqual(
            reason('{"faithfulness": 2, "relevance": 2, "evidence": "\\ud83d", "chunk": ""}'), "quote not in a chunk"
        )


class Folding(TestCase):
    def test_fold(self):
        self.assertEqual(fold("“Ｔap\u00a0\n Storage”"), "'Tap Storage'")
        self.assertEqual(fold("isn´t ″x″"), "isn't 'x'")
        self.assertEqual(fold("so\u00adft"), "soft")
        self.assertNotEqual(fold("Cache"), fold("cache"))


class Refusals(TestCase):
    def test_refusals(self):
        for answer in (
            "",
            "   ",
            "I can't answer that from the available information.",
            "I’m sorry, but I cannot answer this.",
            "Unfortunately, the provided context does not mention the price.",
            "The documents do not contain this information.",
            "I don't know.",
            "There is no information about this in the text.",
            "その情報がありません。",
            "Das weiß ich nicht.",
        ):
            with self.subTest(answer):
                self.assertTrue(is_refusal(answer, RUBRIC))

    def test_answers(self):
        for answer in (
            "Open Settings.",
            "The milk does not contain lactose.",
            "I don't know the exact day, but it was in 1972.",
            "The text does not state it directly; however, the limit follows: 308.",
            "Not everyone can answer this: 308.",
            "Step 1. " + "Tap. " * 80 + "I don't know.",
        ):
            with self.subTest(answer):
                self.assertFalse(is_refusal(answer, RUBRIC))


class Rubric(TestCase):
    def test_the_prompt_shows_the_placeholders_that_are_refused(self):
        for placeholder in RUBRIC["placeholders"].values():
            self.assertIn(f'"{placeholder}"', RUBRIC["system"])
        self.assertEqual(sorted(RUBRIC["schema"]["required"]), sorted(RUBRIC["schema"]["properties"]))
        self.assertIn("{reason}", RUBRIC["retry"])
        self.assertEqual(len(RUBRIC["sha256"]), 64)

    def test_another_file_is_no_rubric(self):
        with self.assertRaises(RecordError):
            load_rubric(self.write("rubric.json", '{"version": "1"}'))


class RecordedReplies(TestCase):
    """Replies of a real 135M-parameter model; an optional check on data that is not part of the repository."""

    def setUp(self):
        super().setUp()
        path = EXTERNAL_DATA / "judge" / "openai_llama_cpp_python.json"
        if not path.exists():
            self.skipTest(f"{path} is not there: 24 recorded judgements are not checked")
        self.cases = json.loads(path.read_text(encoding="utf-8"))["cases"]

    def outcome(self, case):
        body = json.loads(case["response"]["body"])
        if "choices" not in body:
            return "no reply"
        context = json.loads(case["request"]["messages"][1]["content"])["context"]
        return reason(body["choices"][0]["message"]["content"], chunks=list(enumerate(context)))

    def test_what_is_accepted_and_what_is_not(self):
        outcomes = {}
        for case in self.cases:
            outcomes.setdefault((case["mode"], self.outcome(case)), []).append(case["case"])
        cases = ["good", "ungrounded", "wrong_order", "refusal_ok", "off_target", "ja"]
        self.assertEqual(
            outcomes,
            {
                ("free", "not one JSON object"): cases,  # prose
                ("json_object", "score missing"): cases,  # JSON of the model's own making
                ("json_object+schema", None): ["good", "wrong_order", "refusal_ok"],
                ("json_object+schema", "quote not in a chunk"): [
                    "ungrounded",
                    "off_target",
                    "ja",
                ],  # "Cache" for "cache"; a placeholder
                ("json_schema", "no reply"): cases,
            },
        )  # that server doesn't know this format


if __name__ == "__main__":
    unittest.main()
