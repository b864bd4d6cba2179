"""Tiny transformers models with random weights, saved to folders as real ones are; and a Hub that serves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from servers import Handler, Site, serve

WORDS = ("walk", "run", "look", "jump", "left", "right", "twice", "A", "B", "Q", ":", "?", ".", "0", "1")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[EOS]")
COMMIT = "89abcdef0123456789abcdef0123456789abcdef"


def tokenizer(pairs: bool = False, pad: bool = True, ends: bool = False) -> Any:
    """One token a word; with `pairs`, framed as BERT frames one text or two; with `ends`, an end after each text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: position for position, word in enumerate((*SPECIAL, *WORDS))}
    built = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    if pairs:
        built.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
        )
    if ends:
        built.post_processor = processors.TemplateProcessing(
            single="$A [EOS]", special_tokens=[("[EOS]", ids["[EOS]"])]
        )
    names = {"unk_token": "[UNK]", "eos_token": "[EOS]"} | ({"pad_token": "[PAD]"} if pad else {})
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"][: 3 if pairs else 2],
        **names,
    )


def classifier(folder: Path, labels: Sequence[str] = (), classes: int = 3) -> Path:
    """A BERT classifier of at most 16 tokens, its labels named if names are given."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(SPECIAL + WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        num_labels=len(labels) or classes,
        initializer_range=1.0,
    )
    if labels:
        config.id2label = dict(enumerate(labels))
    return _saved(BertForSequenceClassification(config), tokenizer(pairs=True), folder)


def decoder(folder: Path, pad: bool = True) -> Path:
    """A GPT-2 of 32 positions."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    end = SPECIAL.index("[EOS]")
    config = GPT2Config(
        vocab_size=len(SPECIAL + WORDS),
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=32,
        bos_token_id=end,
        eos_token_id=end,
        initializer_range=1.0,
    )
    return _saved(GPT2LMHeadModel(config), tokenizer(pad=pad), folder)


def one_way(folder: Path, kind: str) -> Path:
    """A GPT-2 or a Llama without a head, of 32 positions, and a tokenizer without padding."""
    import torch
    import transformers as hf

    torch.manual_seed(0)
    shape = {"vocab_size": len(SPECIAL + WORDS), "max_position_embeddings": 32, "hidden_size": 16}
    shape |= {"num_hidden_layers": 2, "num_attention_heads": 2, "bos_token_id": None, "eos_token_id": 4}
    config: Any = hf.GPT2Config(**shape) if kind == "gpt2" else hf.LlamaConfig(**shape, intermediate_size=8)
    built = hf.GPT2Model(config) if kind == "gpt2" else hf.LlamaModel(config)
    return _saved(built, tokenizer(pad=False), folder)


def encoder_decoder(folder: Path) -> Path:
    """A T5."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(SPECIAL + WORDS),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=SPECIAL.index("[EOS]"),
        decoder_start_token_id=0,
        initializer_factor=5.0,
    )
    return _saved(T5ForConditionalGeneration(config), tokenizer(), folder)


def _saved(network: Any, words: Any, folder: Path) -> Path:
    from farshift.benchmarks.adapters._transformers import silence_transformers

    with silence_transformers():
        network.save_pretrained(folder)
        words.save_pretrained(folder)
    return folder


class _ModelHub(Handler):
    """As much of the Hugging Face Hub's protocol as `snapshot_download` uses for the model tiny/model."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        self.site.requests.append((path, None))
        if path == "/api/models/tiny/model/revision/main":
            return self.send(200, {}, json.dumps({"id": "tiny/model", "modelId": "tiny/model", "sha": COMMIT}).encode())
        if path == f"/api/models/tiny/model/tree/{COMMIT}":
            tree = [
                {"type": "file", "path": name, "size": len(body), "oid": sha1(body).hexdigest()}
                for name, body in self.site.files.items()
            ]
            return self.send(200, {}, json.dumps(tree).encode())
        body = self.site.files.get(path.removeprefix(f"/tiny/model/resolve/{COMMIT}/"))
        if body is None:
            missing = "RevisionNotFound" if path.startswith("/api/models/tiny/model/") else "RepoNotFound"
            return self.send(404, {"X-Error-Code": missing})
        return self.send(200, {"X-Repo-Commit": COMMIT, "ETag": f'"{sha256(body).hexdigest()}"'}, body)


def model_hub(folder: Path) -> AbstractContextManager[Site]:
    """A Hub with one model, tiny/model: the files of `folder` at one commit, which is its branch main."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    return serve(Site(files), _ModelHub)
