"""Generation: the loop, the context's end, the text, and what is refused."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw import GPT2, ContextError, GPT2Config, Sampler, Tokenizer, TokenizerError
from gpt2hw.generation import Completion, generate, mask_unknown_ids, stream
from gpt2hw.properties import generation as rules
from gpt2hw.properties.drawn_texts import scripts_and_stops
from gpt2hw.properties.generation import ScriptedModel, collect
from gpt2hw.stop_strings import TextUntilStop
from gpt2hw.vocabulary import END_OF_TEXT, derive_vocabulary

# Bytes, a few merges (one of them of two thirds of a character), end-of-text: 262 ids.
MERGES = [("a", "b"), ("ab", "a"), ("å", "ľ"), ("b", "å"), ("Ċ", "Ċ")]
LETTERS = Tokenizer(MERGES)
EOT = LETTERS.eot_id


def script_of(text: str) -> ScriptedModel:
    """A model that says this text, then end-of-text."""
    return ScriptedModel([*LETTERS.encode(text), EOT], LETTERS.n_vocab)


def say(text: str, **settings: object) -> Completion:
    return generate(script_of(text), LETTERS, "ab", **settings)


def random_model(seed: int = 0, n_ctx: int = 16, n_vocab: int = 262) -> GPT2:
    config = GPT2Config(n_vocab=n_vocab, n_ctx=n_ctx, n_embd=8, n_head=2, n_layer=2)
    return GPT2.random(config, seed)


# The loop


def test_with_the_cache_each_id_is_given_to_the_model_once() -> None:
    model = script_of("abaab")
    done = generate(model, LETTERS, "bb", max_new_tokens=3)
    assert model.calls == [LETTERS.encode("bb"), [done.ids[0]], [done.ids[1]]]


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 261), min_size=1, max_size=12),
    st.integers(0, 12),
)
def test_with_and_without_the_cache_greedy_ids_are_the_same(
    seed: int, prompt: list[int], n_new: int
) -> None:
    model = random_model(seed, n_ctx=8)
    rules.cache_changes_nothing(generate, model, LETTERS, prompt, n_new)


def test_without_a_sampler_the_likeliest_id_is_taken() -> None:
    model = random_model()
    greedy = generate(model, LETTERS, "ab", max_new_tokens=9, sampler=Sampler.greedy())
    assert generate(model, LETTERS, "ab", max_new_tokens=9) == greedy


def test_a_sampler_is_given_one_row_for_each_new_id() -> None:
    shapes = []

    def choose(row: torch.Tensor) -> int:
        shapes.append(tuple(row.shape))
        return 65

    done = generate(random_model(), LETTERS, "ab", max_new_tokens=4, sampler=choose)
    assert shapes == [(262,)] * 4
    assert done.ids == [65] * 4


def test_the_same_seed_writes_the_same_text_and_a_sampler_moves_on() -> None:
    model, sampler = random_model(), Sampler(seed=7)
    first, second = (
        generate(model, LETTERS, "ab", max_new_tokens=9, sampler=sampler).ids
        for _ in range(2)
    )
    assert first != second
    torch.rand(5)
    again = generate(model, LETTERS, "ab", max_new_tokens=9, sampler=Sampler(seed=7))
    assert again.ids == first


def test_the_global_random_state_is_untouched() -> None:
    before = torch.get_rng_state()
    generate(random_model(), LETTERS, "ab", max_new_tokens=5, sampler=Sampler())
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("sampler", [None, Sampler(temperature=1e6, seed=1)])
def test_an_id_that_the_tokenizer_does_not_know_is_never_sampled(sampler) -> None:
    model = ScriptedModel([300] * 40, n_vocab=301)
    done = generate(model, LETTERS, "ab", max_new_tokens=40, sampler=sampler)
    assert max(done.ids) < LETTERS.n_vocab


def test_logits_that_are_not_finite_are_an_error_of_the_sampler() -> None:
    class Broken(ScriptedModel):
        def __call__(self, ids, cache=None):
            return super().__call__(ids, cache) * math.nan

    with pytest.raises(ValueError, match="logits_row: the largest logit is nan"):
        generate(Broken([0], 262), LETTERS, "ab", max_new_tokens=1)


# The context's end


def test_a_prompt_that_fills_the_context_allows_one_new_id() -> None:
    model, prompt = random_model(n_ctx=8), [65] * 8
    done = generate(model, LETTERS, prompt, max_new_tokens=1)
    assert len(done.ids) == 1
    assert done.finish_reason == "length"


@pytest.mark.parametrize(
    ("n_prompt", "n_new", "fits"),
    [(8, 1, True), (8, 2, False), (9, 1, False), (1, 8, True), (1, 9, False)],
)
def test_too_many_ids_are_an_error_before_anything_is_computed(
    n_prompt: int, n_new: int, fits: bool
) -> None:
    model = ScriptedModel([65] * 9, 262, n_ctx=8)
    if fits:
        generate(model, LETTERS, [65] * n_prompt, max_new_tokens=n_new)
        assert len(model.calls) == n_new
        return
    with pytest.raises(ContextError, match=rf"{n_prompt} ids.* 8 pos"):
        stream(model, LETTERS, [65] * n_prompt, max_new_tokens=n_new)  # at the call
    assert model.calls == []


@pytest.mark.parametrize("n_prompt", [1, 5, 7, 8])
def test_overflow_stop_runs_until_the_context_is_full(n_prompt: int) -> None:
    model, prompt = random_model(n_ctx=8), [65] * n_prompt
    fits = 8 - n_prompt + 1
    for n_new, reason in (
        (fits - 1, "length"),
        (fits, "length"),
        (fits + 1, "context"),
    ):
        done = generate(model, LETTERS, prompt, max_new_tokens=n_new, overflow="stop")
        assert done.finish_reason == reason
        assert len(done.ids) == min(n_new, fits)


def test_overflow_stop_refuses_a_prompt_longer_than_the_context() -> None:
    model = ScriptedModel([65], 262, n_ctx=8)
    with pytest.raises(ContextError, match="n_ctx"):
        generate(model, LETTERS, [65] * 9, max_new_tokens=1, overflow="stop")
    assert model.calls == []


def test_overflow_slide_gives_the_model_the_last_n_ctx_ids() -> None:
    model = ScriptedModel([10, 11, 12, 13, 14], 262, n_ctx=4)
    done = generate(model, LETTERS, [1, 2, 3], max_new_tokens=5, overflow="slide")
    assert done.ids == [10, 11, 12, 13, 14]
    assert done.finish_reason == "length"
    window = [[1, 2, 3], [10], [2, 3, 10, 11], [3, 10, 11, 12], [10, 11, 12, 13]]
    assert model.calls == window


def test_overflow_slide_takes_a_prompt_longer_than_the_context() -> None:
    model = ScriptedModel([10, 11], 262, n_ctx=3)
    done = generate(model, LETTERS, [1, 2, 3, 4, 5], max_new_tokens=2, overflow="slide")
    assert model.calls == [[3, 4, 5], [4, 5, 10]]
    assert done.prompt_ids == [1, 2, 3, 4, 5]


# The prompt


@pytest.mark.parametrize("empty", ["", []])
def test_an_empty_prompt_begins_from_end_of_text_and_does_not_show_it(empty) -> None:
    model = script_of("ba")
    done = generate(model, LETTERS, empty)
    assert (done.prompt, done.prompt_ids, done.text) == ("", [EOT], "ba")
    assert model.calls[0] == [EOT]


def test_a_prompt_of_ids_is_kept_and_told_as_text() -> None:
    prompt = [np.int64(65), 66, EOT]
    done = generate(script_of("ba"), LETTERS, prompt, max_new_tokens=1)
    assert done.prompt == "bc<|endoftext|>"
    assert done.prompt_ids == [65, 66, EOT]
    assert prompt == [65, 66, EOT]
    assert all(type(token_id) is int for token_id in done.prompt_ids)


def test_a_prompt_of_text_is_kept_as_it_is() -> None:
    done = generate(script_of(""), LETTERS, "地 ab")
    assert done.prompt == "地 ab"
    assert done.prompt_ids == LETTERS.encode("地 ab")


@pytest.mark.parametrize("bad", [True, "a", 1.0, None, -1, 262, 10**30, [65]])
def test_a_prompts_ids_are_integers_that_the_model_knows(bad: object) -> None:
    model = script_of("a")
    with pytest.raises(ValueError, match=r"prompt: must be ids .* 0 to 261, not"):
        stream(model, LETTERS, [65, bad])
    assert model.calls == []


@pytest.mark.parametrize("bad", [None, 65, b"ab", (65, 66), torch.tensor([65]), {65}])
def test_a_prompt_is_a_text_or_a_list(bad: object) -> None:
    with pytest.raises(ValueError, match="prompt: must be a str or a list of ids"):
        stream(script_of("a"), LETTERS, bad)


def test_a_token_beyond_the_models_vocabulary_is_named() -> None:
    with pytest.raises(ValueError, match="the id 257, but the model knows 0 to 99"):
        stream(ScriptedModel([1], 100), LETTERS, "aba")
    with pytest.raises(ValueError, match="0 to 99, not 261"):  # end-of-text
        stream(ScriptedModel([1], 100), LETTERS, "")
    done = generate(ScriptedModel([65, 66], 100), LETTERS, "a", max_new_tokens=2)
    assert done.text == "bc"


def test_an_id_that_the_tokenizer_does_not_know_is_no_prompt() -> None:
    with pytest.raises(TokenizerError, match="300"):
        stream(ScriptedModel([1], 301), LETTERS, [65, 300])


def test_a_lone_surrogate_in_the_prompt_is_refused_at_the_call() -> None:
    with pytest.raises(TokenizerError, match="surrogate"):
        stream(script_of("a"), LETTERS, "a\ud83d")


def test_without_an_end_of_text_token_an_empty_prompt_is_refused() -> None:
    vocab = derive_vocabulary(MERGES)
    del vocab[END_OF_TEXT]
    endless = Tokenizer(MERGES, vocab)
    assert endless.eot_id is None
    with pytest.raises(ValueError, match="prompt: is empty"):
        stream(script_of("a"), endless, "")
    done = generate(ScriptedModel([1, 2, 3], 262), endless, "a", max_new_tokens=3)
    assert done.finish_reason == "length"


def test_the_mask_of_unknown_ids_lies_on_the_device_where_the_logits_lie() -> None:
    """torch's device "meta" is there on every machine; it has no numbers."""
    logits = torch.zeros(3, device="meta")
    assert mask_unknown_ids(logits, 2).device == logits.device


# How many


def test_no_new_tokens_compute_nothing() -> None:
    class Untouched(ScriptedModel):
        def new_cache(self):
            raise AssertionError

    done = generate(Untouched([], 262), LETTERS, "ab", max_new_tokens=0)
    assert done == Completion("", "ab", LETTERS.encode("ab"), [], "length")


def test_there_are_fifty_new_tokens_unless_it_is_said() -> None:
    letters = "a " * 60
    assert len(say(letters).ids) == 50
    _, done = collect(stream(script_of(letters), LETTERS, "ab"))
    assert len(done.ids) == 50


@pytest.mark.parametrize("bad", [-1, 1.0, True, "5", None, math.nan])
def test_max_new_tokens_is_an_integer_from_zero_up(bad: object) -> None:
    with pytest.raises(
        ValueError, match="max_new_tokens: must be an integer from 0 up"
    ):
        stream(script_of("a"), LETTERS, "ab", max_new_tokens=bad)


@pytest.mark.parametrize("bad", ["", "wrap", "Stop", None, True, ["stop"]])
def test_overflow_is_one_of_three(bad: object) -> None:
    with pytest.raises(ValueError, match=r"overflow: must be one of .*'slide'"):
        stream(script_of("a"), LETTERS, "ab", overflow=bad)


@pytest.mark.parametrize("bad", ["greedy", 0.7, Sampler, True, {"seed": 7}])
def test_a_sampler_is_a_sampler(bad: object) -> None:
    with pytest.raises(ValueError, match="sampler: must be a Sampler or None, not"):
        stream(script_of("a"), LETTERS, "ab", sampler=bad)


# The text


@given(scripts_and_stops(LETTERS))
def test_text_ids_and_reason_follow_their_definition(case) -> None:
    rules.writes_the_script(generate, LETTERS, *case)


@given(scripts_and_stops(LETTERS), st.integers(0, 40))
def test_the_joined_pieces_are_the_text(case, n_new: int) -> None:
    script, stops = case
    n_new = min(n_new, len(script))
    rules.pieces_join_to_the_text(
        stream,
        ScriptedModel(script, LETTERS.n_vocab),
        LETTERS,
        "ab",
        max_new_tokens=n_new,
        stop=stops,
    )


@given(scripts_and_stops(LETTERS))
def test_stream_and_generate_say_the_same(case) -> None:
    script, stops = case
    settings = {"max_new_tokens": len(script), "stop": stops}
    one, other = (ScriptedModel(script, LETTERS.n_vocab) for _ in range(2))
    _, done = collect(stream(one, LETTERS, "ab", **settings))
    assert done == generate(other, LETTERS, "ab", **settings)


@given(
    st.lists(st.text("ab", max_size=3), max_size=6),
    st.lists(st.text("ab", min_size=1, max_size=5), max_size=3),
)
def test_only_what_could_become_a_stop_string_waits(
    pieces: list[str], stops: list[str]
) -> None:
    rules.shows_what_is_sure(TextUntilStop, pieces, stops)


def test_pieces_are_whole_characters() -> None:
    gpt2 = Tokenizer.from_pretrained("gpt2")
    model = ScriptedModel([41840, 235, 28839, 108], gpt2.n_vocab)
    pieces, done = collect(stream(model, gpt2, "", max_new_tokens=4))
    assert pieces == ["👍", "地"]
    assert done.text == "👍地"


def test_a_character_that_is_unfinished_at_the_end_is_one_replacement() -> None:
    script = LETTERS.encode("a👍")[:-1]
    model = ScriptedModel(script, 262)
    pieces, done = collect(stream(model, LETTERS, "ab", max_new_tokens=len(script)))
    assert pieces == ["a", "\ufffd"]
    assert done.text == "a\ufffd"
    model = ScriptedModel([*script, EOT], 262)
    assert generate(model, LETTERS, "ab", max_new_tokens=9).text == "a\ufffd"


def test_end_of_text_ends_it_and_is_an_id_but_no_text() -> None:
    model = ScriptedModel([65, EOT, 66], 262)
    done = generate(model, LETTERS, "ab", max_new_tokens=3)
    assert (done.text, done.ids, done.finish_reason) == ("b", [65, EOT], "end_of_text")
    assert len(model.calls) == 2


def test_the_name_of_end_of_text_in_the_new_text_is_plain_text() -> None:
    done = say("a<|endoftext|>b", max_new_tokens=50, stop=["<|endoftext|>"])
    assert (done.text, done.finish_reason) == ("a", "stop")
    assert say("ab", stop=["<|endoftext|>"]).finish_reason == "end_of_text"


def test_a_stop_string_across_tokens_is_cut_and_its_ids_are_kept() -> None:
    done = say("hello END more", stop=["END"])
    assert (done.text, done.finish_reason) == ("hello ", "stop")
    assert LETTERS.decode(done.ids) == "hello END"


def test_of_a_stop_string_that_comes_twice_the_first_cuts() -> None:
    gate = TextUntilStop(["END"])
    assert gate.stopped is False
    assert gate.push("one END two END") == "one "
    assert gate.stopped is True


def test_what_was_held_back_is_given_out_once() -> None:
    gate = TextUntilStop(["END"])
    assert (gate.push("the E"), gate.flush(), gate.flush()) == ("the ", "E", "")
    assert gate.text == "the E"


def test_of_several_stop_strings_the_one_that_begins_first_cuts() -> None:
    newlines = LETTERS.encode("\n\n")
    assert len(newlines) == 1
    for stops in (["\n", "\n\n"], ["\n\n", "\n"], ["z", "\n\n", "a\n"]):
        done = say("bba\n\nb", stop=stops)
        assert done.text == ("bb" if "a\n" in stops else "bba")
        assert done.finish_reason == "stop"


def test_a_stop_string_inside_one_token_is_found() -> None:
    assert len(LETTERS.encode("aba")) == 1
    done = say("aba", stop=["b"])
    assert (done.text, done.ids) == ("a", LETTERS.encode("aba"))


def test_what_only_began_like_a_stop_string_is_shown() -> None:
    assert say("EN EEND", stop=["ENDED", "EEK"]).text == "EN EEND"
    assert say("EN", stop=["END"]).text == "EN"


def test_a_stop_string_in_the_prompt_or_across_its_end_is_no_stop() -> None:
    model = script_of("D and END")
    done = generate(model, LETTERS, "END EN", stop=["END"])
    assert done.text == "D and "


def test_a_stop_string_may_be_the_first_thing_said() -> None:
    pieces, done = collect(stream(script_of("END"), LETTERS, "ab", stop=["END"]))
    assert (pieces, done.text, done.finish_reason) == ([], "", "stop")


def test_a_stop_string_of_a_character_that_comes_in_parts_is_found() -> None:
    done = say("ab地ab", stop=["地"])
    assert (done.text, done.finish_reason) == ("ab", "stop")


def test_a_stop_string_that_the_last_replacement_completes_still_cuts() -> None:
    script = [65, LETTERS.encode("👍")[0]]
    stop = ["b\ufffd"]
    done = generate(
        ScriptedModel(script, 262), LETTERS, "a", max_new_tokens=2, stop=stop
    )
    assert (done.text, done.finish_reason) == ("", "stop")
    ended = [*script, EOT]
    done = generate(
        ScriptedModel(ended, 262), LETTERS, "a", max_new_tokens=3, stop=stop
    )
    assert (done.text, done.finish_reason) == ("", "end_of_text")


def test_where_reasons_meet_the_first_of_the_order_is_told() -> None:
    """end_of_text, stop, length, context."""
    assert say("ab", max_new_tokens=2).finish_reason == "end_of_text"
    assert say("b", max_new_tokens=1, stop=["b"]).finish_reason == "stop"
    assert say("b", max_new_tokens=1).finish_reason == "length"
    full = {"max_new_tokens": 9, "overflow": "stop"}
    for script, reason in (([65, EOT], "end_of_text"), ([65, 66], "context")):
        model = ScriptedModel(script, 262, n_ctx=3)
        assert generate(model, LETTERS, [1, 2], **full).finish_reason == reason
    model = ScriptedModel([65, 66], 262, n_ctx=3)
    assert generate(model, LETTERS, [1, 2], stop="c", **full).finish_reason == "stop"


def test_one_string_is_one_stop_string() -> None:
    assert say("hello END", stop="END").text == "hello "
    assert say("hello END", stop=iter(["x", "END"])).text == "hello "


@pytest.mark.parametrize("bad", ["", [""], ["a", ""], None, [None], [b"a"], b"a", 7])
def test_stop_strings_are_strings_and_not_empty(bad: object) -> None:
    with pytest.raises(ValueError, match="stop: must be a string or several"):
        stream(script_of("a"), LETTERS, "ab", stop=bad)


# The stream


def test_a_piece_is_shown_as_soon_as_it_is_sure() -> None:
    model = script_of("xENyEND")
    pieces = stream(model, LETTERS, "ab", stop=["END"])
    seen = [(piece, len(model.calls)) for piece in pieces]
    assert seen == [("x", 1), ("ENy", 4)]


def test_the_stream_computes_nothing_before_it_is_asked() -> None:
    model = script_of("abc")
    pieces = stream(model, LETTERS, "ab")
    assert model.calls == []
    assert next(pieces) == "ab"


def test_a_stream_may_be_left_early() -> None:
    model = script_of("xyz")
    pieces = stream(model, LETTERS, "ab")
    assert next(pieces) == "x"
    pieces.close()
    assert list(pieces) == []
    assert len(model.calls) == 1


def test_ctrl_c_passes_through() -> None:
    def interrupt(row: torch.Tensor) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(script_of("a"), LETTERS, "ab", sampler=interrupt)


def test_yield_from_gives_the_completion() -> None:
    def shout() -> Iterator[str]:
        done = yield from stream(script_of("xy"), LETTERS, "ab")
        yield done.finish_reason

    assert list(shout()) == ["x", "y", "end_of_text"]


def test_a_completion_does_not_change() -> None:
    with pytest.raises(AttributeError):
        say("a").text = "b"


def test_a_tokenizer_of_another_model_is_told_as_such() -> None:
    model, gpt2 = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("gpt2")
    with pytest.raises(ValueError, match="do not belong together"):
        generate(model, gpt2, "Once upon a time")


def test_a_prompt_that_is_too_long_by_itself_is_told_to_be_shortened() -> None:
    for overflow in ("error", "stop"):
        with pytest.raises(
            ContextError, match=r"the prompt alone has 1025 ids.*shorten"
        ):
            stream(script_of("a"), LETTERS, [65] * 1025, overflow=overflow)


def test_a_stop_strings_surrogate_pair_is_the_character_it_stands_for() -> None:
    done = generate(script_of("a\U0001f44db"), LETTERS, "a", stop="\ud83d\udc4d")
    assert (done.text, done.finish_reason) == ("a", "stop")
    with pytest.raises(TokenizerError, match="position 1"):
        stream(script_of("a"), LETTERS, "a", stop="a\ud83d")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((None, LETTERS, "a"), "model: must be a GPT2, or what works as one, not None"),
        ((LETTERS, script_of("a"), "a"), "model: must be a GPT2, or what works as one"),
        ((script_of("a"), "tiny", "a"), "tokenizer: must be a Tokenizer, not 'tiny'"),
    ],
)
def test_what_is_no_model_or_no_tokenizer_is_named(arguments, rule) -> None:
    with pytest.raises(ValueError, match=f"^{rule}"):
        generate(*arguments)


@pytest.mark.parametrize("chosen", [None, 1.5, "1", torch.tensor(1.0)])
def test_a_sampler_gives_an_id(chosen: object) -> None:
    with pytest.raises(ValueError, match="sampler: must give an id, not"):
        generate(
            random_model(),
            LETTERS,
            "ab",
            max_new_tokens=2,
            sampler=lambda _: chosen,
        )
