"""Twenty samples of a model, none left out: `python docs/appendix/samples.py [FOLDER]`.

Each begins with the prompt below and has the seed that stands over it; temperature 0.8
and top-p 0.95, as the command line draws by default.
"""

import sys

from gpt2hw import GPT2, Sampler, Tokenizer, generate

PROMPTS = ("Once upon a time", "The king said to his daughter", "There was once a fox")
N_SAMPLES = 20


def main() -> None:
    """Prints the samples as Markdown."""
    name = sys.argv[1] if len(sys.argv) > 1 else "tiny"
    model, tokenizer = GPT2.from_pretrained(name), Tokenizer.from_pretrained(name)
    print("# Samples of the tiny model\n")
    print("Made by `python docs/appendix/samples.py`; none is left out.")
    for seed in range(1, N_SAMPLES + 1):
        prompt = PROMPTS[seed % len(PROMPTS)]
        sampler = Sampler(temperature=0.8, top_p=0.95, seed=seed)
        done = generate(
            model,
            tokenizer,
            prompt,
            max_new_tokens=200,
            sampler=sampler,
            overflow="stop",
        )
        print(f"\n## Seed {seed}\n")
        quoted = (done.prompt + done.text).strip().replace("\n", "\n> ")
        print(f"> {quoted}")
        print(f"\nEnded by: {done.finish_reason}.")


if __name__ == "__main__":
    main()
