"""`gpt2hw generate`: a text goes on, and is shown as it is written."""

from gpt2hw.cli import console
from gpt2hw.cli import write_options as options
from gpt2hw.cli.options import Device, Model, Precision, Threads, load, prompt_of
from gpt2hw.cli.writing import (
    Clock,
    begin,
    sampler_settings,
    stats_lines,
    threads_told,
    unescaped,
    write,
)


def generate(
    prompt: options.Prompt,
    model: Model = "tiny",
    max_new_tokens: options.MaxNewTokens = options.N_NEW,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    greedy: options.Greedy = False,
    seed: options.Seed = None,
    stop: options.Stop = None,
    overflow: options.OverflowWay = None,
    only_new: options.OnlyNew = False,
    stats: options.Stats = False,
    precision: Precision = "float32",
    threads: Threads = None,
    device: Device = "cpu",
) -> None:
    """Continue a text, shown as it is written.

    The output is the prompt and what follows it, and ends with a newline. If PROMPT is
    -, it is read from standard input (UTF-8), without its last newline.
    """
    settings = sampler_settings(greedy, temperature, top_k, top_p, seed)
    stops = [unescaped(text) for text in stop or []]
    text = prompt_of(prompt)
    engine, tokenizer = load(model, device, threads, precision, mmap=True)
    from gpt2hw.sampling import Sampler

    clock = Clock(Sampler(**settings))
    pieces = begin(
        engine,
        tokenizer,
        text,
        max_new_tokens,
        sampler=clock,
        stop=stops,
        overflow=overflow or "stop",
    )
    clock.start()
    done = write("" if only_new else text, pieces)
    if overflow is None and done.finish_reason == "context":
        console.say(
            f"gpt2hw: stopped: the model's {engine.config.n_ctx} positions are used up;"
            " --overflow slide goes on"
        )
    if stats:
        used = None if greedy else settings["seed"]
        used_threads = threads_told(threads, engine.config)
        console.say_apart(stats_lines(done, clock.times, used, used_threads))
