"""Store the weights of a graph in eight or four bits. The runtime turns each block of them back as it multiplies."""

from __future__ import annotations

import logging

from onnx import ModelProto

from scrapy_dripper.cli.console import UsageError

BITS = {"int8": 8, "int4": 4}
BLOCK = 32
"""Number of weights with a scale and a zero point of their own. Smaller blocks are more exact, and larger."""


def quantize(model: ModelProto, weight_format: str) -> None:
    """Replace the products with weights of a graph, in place, by MatMulNBits. Everything else stays as it is.

    Raise :exc:`UsageError` if the installed onnxruntime cannot do that.
    """
    root, name = logging.getLogger(), "onnxruntime.quantization.matmul_nbits_quantizer"
    handlers, level = list(root.handlers), root.level
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError as error:
        raise UsageError(
            f"this onnxruntime cannot make {weight_format} weights ({error}): install 1.23 or later"
        ) from None
    finally:  # its import configures the logging of the program
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.getLogger(name).setLevel(logging.WARNING)
    MatMulNBitsQuantizer(model, bits=BITS[weight_format], block_size=BLOCK).process()
