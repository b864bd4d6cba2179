"""A generative model of transformers: greedy continuations of a benchmark's prompts, parsed into predictions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..answers import Failed
from ..model import Columns
from ._transformers import compute_context_length, find_pad_token, silence_transformers

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

OVER_WINDOW = "prompt over the context window"
UNREAD = "no answer could be read"

_TOKENS = ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id")


class TextGenerator:
    """Greedy decoding with a decoder or an encoder-decoder.

    A row whose prompt leaves fewer than `max_tokens` tokens of the context window is `Failed`, as is one whose
    continuation has no parsable answer. The weights' own generation settings (sampling, beams, penalties) are ignored:
    every model is decoded in the same way.
    """

    def __init__(self, network: Any, tokenizer: Any, prompt: Prompt, batch_size: int, max_length: int | None) -> None:
        self.network, self.tokenizer, self.prompt, self.batch_size = network, tokenizer, prompt, batch_size
        self.window = compute_context_length(network.config, tokenizer, max_length)
        self.is_encoder_decoder = network.config.is_encoder_decoder
        """Whether the output is the continuation only, without the prompt."""
        tokenizer.padding_side = "right" if self.is_encoder_decoder else "left"
        own = network.generation_config
        network.generation_config = import_module("transformers").GenerationConfig(
            do_sample=False,
            num_beams=1,
            pad_token_id=find_pad_token(tokenizer),
            **{name: getattr(own, name, None) for name in _TOKENS},
        )

    def predict(self, batch: Columns) -> list[Any]:
        """Return one prediction per row, or `Failed`. Prompts are batched by length."""
        texts = self.prompt.texts(batch)
        with silence_transformers():
            lengths = [len(ids) for ids in self.tokenizer(texts)["input_ids"]]
        room = (
            None
            if self.window is None
            else self.window - (0 if self.is_encoder_decoder else self.prompt.pin.max_tokens)
        )
        fitting = sorted(
            (row for row in range(len(texts)) if room is None or lengths[row] <= room), key=lengths.__getitem__
        )
        answers: list[Any] = [Failed(OVER_WINDOW)] * len(texts)
        outputs: list[str | None] = [None] * len(texts)
        for start in range(0, len(fitting), self.batch_size):
            rows = fitting[start : start + self.batch_size]
            for row, text in zip(rows, self._continued([texts[row] for row in rows]), strict=True):
                outputs[row], prediction = text, self.prompt.read(text)
                answers[row] = Failed(UNREAD) if prediction is None else prediction
        self.farshift_outputs = outputs
        return answers

    def _continued(self, prompts: list[str]) -> list[str]:
        import torch

        with silence_transformers(), torch.no_grad():
            encoded = self.tokenizer(prompts, padding=True, return_tensors="pt", return_token_type_ids=False)
            start = 0 if self.is_encoder_decoder else encoded["input_ids"].shape[1]
            output = self.network.generate(
                **encoded.to(self.network.device),
                max_new_tokens=self.prompt.pin.max_tokens,
                stopping_criteria=self._stopping(start),
            )
        return self._texts(output[:, start:])

    def _texts(self, tokens: Any) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    def _stopping(self, start: int) -> Any:
        """Stop a row when its decoded continuation contains a stop string, however it is tokenised."""
        import torch

        stops = [stop for stop in self.prompt.pin.stop if stop]

        def ended(tokens: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            texts = self._texts(tokens[:, start:])
            return tokens.new_tensor([any(stop in text for stop in stops) for text in texts], dtype=torch.bool)

        return import_module("transformers").StoppingCriteriaList([ended] if stops else [])
