"""Well-known networks as Cells: each of any size, with the parameters named as MindSpore names them."""

from msc.model_zoo.bert import BertModel
from msc.model_zoo.gpt import GptDecoder, GptStep
from msc.model_zoo.lenet import LeNet5
from msc.model_zoo.llama import Llama, LlamaConfig, LlamaGenerator, LlamaStep
from msc.model_zoo.llama_files import load_llama
from msc.model_zoo.lstm import LstmClassifier
from msc.model_zoo.mobilenet import MobileNetV2
from msc.model_zoo.resnet import ResNet, resnet50
from msc.model_zoo.unet import UNet

__all__ = [
    "BertModel",
    "GptDecoder",
    "GptStep",
    "LeNet5",
    "Llama",
    "LlamaConfig",
    "LlamaGenerator",
    "LlamaStep",
    "LstmClassifier",
    "MobileNetV2",
    "ResNet",
    "UNet",
    "load_llama",
    "resnet50",
]
