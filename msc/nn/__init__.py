"""Cells: the layers that networks are made of, as MindSpore's `nn`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name
from msc.frontend.old_paths import old_paths
from msc.nn.activation import (
    CELU, ELU, GELU, GLU, FastGelu, Hardtanh, HShrink, HSigmoid, HSwish, LeakyReLU, LogSigmoid, LogSoftmax, Mish,
    PReLU, ReLU, ReLU6, SeLU, Sigmoid, SiLU, Softmax, Softmax2d, Softmin, Softplus, SoftShrink, Softsign, Tanh,
    Tanhshrink, Threshold, get_activation,
)
from msc.nn.basic import (
    ConstantPad1d, ConstantPad2d, ConstantPad3d, Dense, Dropout, Dropout1d, Dropout2d, Dropout3d, Embedding,
    Flatten, Identity, Linear, Pad, PixelShuffle, PixelUnshuffle, ReflectionPad1d, ReflectionPad2d,
    ReplicationPad1d, ReplicationPad2d, Upsample, ZeroPad2d,
)
from msc.nn.cell import Cell
from msc.nn.containers import CellDict, CellList, SequentialCell
from msc.nn.convolution import Conv1d, Conv1dTranspose, Conv2d, Conv2dTranspose, Conv3d, Conv3dTranspose
from msc.nn.losses import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, DiceLoss, HingeEmbeddingLoss, HuberLoss,
    KLDivLoss, L1Loss, LossBase, MAELoss, MarginRankingLoss, MSELoss, NLLLoss, RMSELoss, SmoothL1Loss,
    SoftMarginLoss, SoftmaxCrossEntropyWithLogits, TripletMarginLoss,
)
from msc.nn.losses import (
    FocalLoss, GaussianNLLLoss, MultiLabelSoftMarginLoss, MultiMarginLoss, PoissonNLLLoss,
    TripletMarginWithDistanceLoss,
)
from msc.nn.metrics import (
    F1, MAE, MSE, ROC, Accuracy, ConfusionMatrix, CosineSimilarity, Fbeta, Loss, Metric, Perplexity, Precision, Recall,
    Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy, auc, get_metric_fn,
)
from msc.nn.normalisation import (
    LRN, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
    LayerNorm, RMSNorm,
)
from msc.nn.optim.rates import (
    cosine_decay_lr, exponential_decay_lr, inverse_decay_lr, natural_exp_decay_lr, piecewise_constant_lr,
    polynomial_decay_lr, warmup_lr,
)
from msc.nn.optim.optimizer import Optimizer
from msc.nn.optim.schedules import (
    CosineDecayLR, ExponentialDecayLR, InverseDecayLR, LearningRateSchedule, NaturalExpDecayLR, PolynomialDecayLR,
    WarmUpLR,
)
from msc.nn.optim.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
from msc.nn.optim.scaled_steps import TrainOneStepWithLossScaleCell
from msc.nn.optim.steps import ForwardValueAndGrad, TrainOneStepCell, WithEvalCell, WithLossCell
from msc.nn.optim.updates import FTRL, SGD, Adagrad, Adam, AdamWeightDecay, Lamb, Momentum, RMSProp
from msc.nn.pooling import (
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d,
)
from msc.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from msc.nn.losses import CTCLoss, MultilabelMarginLoss
from msc.nn.transformer import (
    MultiheadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "CELU", "ELU", "F1", "FTRL", "GELU", "GLU", "GRU", "LRN", "LSTM", "MAE", "MSE", "RNN", "ROC", "SGD", "Accuracy",
    "Adagrad", "Adam", "AdamWeightDecay", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss",
    "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CTCLoss", "Cell", "CellDict",
    "CellList",
    "ConfusionMatrix", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv1dTranspose", "Conv2d",
    "Conv2dTranspose", "Conv3d", "Conv3dTranspose", "CosineDecayLR", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dense", "DiceLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d",
    "DynamicLossScaleUpdateCell", "Embedding", "ExponentialDecayLR", "FastGelu", "Fbeta", "FixedLossScaleUpdateCell",
    "Flatten", "FocalLoss", "ForwardValueAndGrad",
    "GRUCell", "GaussianNLLLoss", "GroupNorm", "HShrink", "HSigmoid", "HSwish", "Hardtanh",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "InverseDecayLR", "KLDivLoss", "L1Loss", "LSTMCell", "Lamb", "LayerNorm", "LeakyReLU", "LearningRateSchedule",
    "Linear", "LogSigmoid", "LogSoftmax", "Loss", "LossBase", "MAELoss", "MSELoss", "MarginRankingLoss", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "Metric", "Mish", "Momentum", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultiheadAttention", "MultilabelMarginLoss", "NLLLoss", "NaturalExpDecayLR", "Optimizer", "PReLU", "Pad",
    "Perplexity", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "PolynomialDecayLR", "Precision",
    "RMSELoss", "RMSNorm", "RMSProp", "RNNCell",
    "ReLU", "ReLU6", "Recall", "ReflectionPad1d", "ReflectionPad2d", "ReplicationPad1d", "ReplicationPad2d", "SeLU",
    "SequentialCell", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "SoftShrink", "Softmax", "Softmax2d",
    "SoftmaxCrossEntropyWithLogits", "Softmin", "Softplus", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Upsample",
    "WarmUpLR", "WithEvalCell", "WithLossCell", "ZeroPad2d", "auc", "cosine_decay_lr", "exponential_decay_lr",
    "get_activation", "get_metric_fn", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
    "polynomial_decay_lr", "warmup_lr",
]


publish(globals(), __all__, "nn")

old_paths(
    "msc.nn",
    "msc.nn",
    "dynamic_lr layer layer.activation layer.basic layer.container layer.conv layer.dense layer.embedding "
    "layer.image layer.math layer.normalization layer.padding layer.pooling layer.rnn_cells layer.rnns "
    "layer.transformer learning_rate_schedule loss loss.loss optim.ada_grad optim.adam optim.ftrl optim.lamb "
    "optim.momentum optim.rmsprop optim.sgd wrap wrap.cell_wrapper wrap.grad_reducer wrap.loss_scale",
)


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.nn", name, __all__)
