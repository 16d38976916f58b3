"""Texts and their GPT-2 ids, as tiktoken, tokenizers and a naive BPE all give them."""

# What the table shows -> text -> ids.
GPT2_IDS: dict[str, dict[str, list[int]]] = {
    "nothing in, nothing out": {
        "": [],
    },
    "a space belongs to the word after it": {
        "Hello world": [15496, 995],
        "Hello world!": [15496, 995, 0],
        "The dog": [464, 3290],
        "Hello": [15496],
        " Hello": [18435],
        " ?": [5633],
        "y is ?": [88, 318, 5633],
        " SolidGoldMagikarp": [43453],
    },
    "a space at the end stays": {
        "Hello ": [15496, 220],
        "Hello  ": [15496, 220, 220],
    },
    "of several spaces, the last goes to the word": {
        "a    b": [64, 220, 220, 220, 275],
        " " * 20 + "x": [*[220] * 19, 2124],
        "def f(x):\n    return x\n": [
            *(4299, 277, 7, 87, 2599, 198),
            *(220, 220, 220, 1441, 2124, 198),
        ],
    },
    "line feeds and tabs": {
        "a\n\nb": [64, 198, 198, 65],
        "a \n b": [64, 220, 198, 275],
        "\n\n \n": [628, 220, 198],
        "a\r\nb": [64, 201, 198, 65],
        "\tx\t\ty": [197, 87, 197, 197, 88],
    },
    "white space beyond ASCII": {
        "a\xa0b": [64, 1849, 65],
        "a \xa0 b": [64, 5624, 275],
        "a\x85b": [64, 126, 227, 65],
        "a\u2028b": [64, 447, 101, 65],
        "a\u3000b": [64, 5099, 222, 65],
    },
    "what looks like white space and is none": {
        "a\u180eb": [64, 157, 254, 236, 65],
        "a\u200bb": [64, 9525, 65],
        "a\x1cb": [64, 216, 65],
        "\x1c\t": [216, 197],
        "a \x1f b": [64, 220, 219, 275],
    },
    "controls": {
        "a\x00b": [64, 188, 65],
        "\x00\x00": [188, 188],
        "\ufeffHi": [171, 119, 123, 17250],
        "\ufffd": [4210],
    },
    "contractions, in lower case and with the typewriter's apostrophe": {
        "Hello, I'm a language model,": [15496, 11, 314, 1101, 257, 3303, 2746, 11],
        "IT'S it's": [2043, 6, 50, 340, 338],
        "don\u2019t": [9099, 447, 247, 83],
        "'lls 'LL '1 'dx": [1183, 82, 705, 3069, 705, 16, 705, 34350],
        " there is this someone 'you' who has the ability of 'sensing things": [
            *(612, 318, 428, 2130, 705, 5832, 6, 508),
            *(468, 262, 2694, 286, 705, 82, 26426, 1243),
        ],
    },
    "numbers of any script": {
        "1234567890": [10163, 2231, 30924, 3829],
        "abc123 def": [39305, 10163, 825],
        "x\u00b2": [87, 31185],
        "\u2167": [158, 227, 100],
        "\u0661\u0662\u0663": [149, 94, 149, 95, 149, 96],
    },
    "letters with marks: nothing is composed or decomposed": {
        "\u00e9": [2634],
        "e\u0301": [68, 136, 223],
        "q\u0301x": [80, 136, 223, 87],
        "\u0928\u092e\u0938\u094d\u0924\u0947": [
            *(11976, 101, 11976, 106, 11976, 116),
            *(24231, 235, 11976, 97, 24231, 229),
        ],
    },
    "characters of several bytes": {
        "\u5730": [28839, 108],
        "\U0001f44d": [41840, 235],
        "\U0001f468\u200d\U0001f469\u200d\U0001f467": [
            *(41840, 101, 447, 235, 41840, 102, 447, 235, 41840, 100),
        ],
    },
    "a surrogate pair is the character it stands for": {
        "\ud83d\udc4d": [41840, 235],
    },
    "the end-of-text mark in a text is text": {
        "<|endoftext|>": [27, 91, 437, 1659, 5239, 91, 29],
        "hi<|endoftext|>there": [5303, 27, 91, 437, 1659, 5239, 91, 29, 8117],
    },
    "merges that begin with # are merges": {
        "# #": [2, 1303],
        "## Title": [2235, 11851],
        "########": [7804],
        " #": [1303],
    },
    "runs": {
        "a" * 100: [24794] * 25,
        "snake_case": [16184, 539, 62, 7442],
    },
    "single bytes, in GPT-2's order of them": {
        "!": [0],
        "~": [93],
        "\x00": [188],
        "\n": [198],
        " ": [220],
        "\x7f": [221],
    },
    "prose": {
        "GPT2 inference runtime in C++ and CUDA": [
            *(38, 11571, 17, 32278, 19124, 287, 327, 4880, 290, 29369, 5631),
        ],
        "I enjoy walking with my cute dog": [40, 2883, 6155, 351, 616, 13779, 3290],
        "Alan Turing theorized that computers would one day become": [
            *(36235, 39141, 18765, 1143, 326, 9061, 561, 530, 1110, 1716),
        ],
        "What is the answer to life, the universe, and everything?": [
            *(2061, 318, 262, 3280, 284, 1204, 11, 262, 6881, 11, 290, 2279, 30),
        ],
        "When Mary and John went to the store, John gave a drink to": [
            *(2215, 5335, 290, 1757, 1816, 284, 262, 3650),
            *(11, 1757, 2921, 257, 4144, 284),
        ],
    },
}
