"""Public names that are not compared at special points, by the reason."""

from __future__ import annotations

_NAMES: dict[str, str] = {
    "it gives integers, booleans, text or no tensor at all": (
        "ops.ApproximateEqual ops.Argmax ops.Argmin ops.BitwiseAnd ops.BitwiseOr ops.BitwiseXor ops.DType "
        "ops.DynamicShape ops.Equal ops.FloorDiv ops.Greater ops.GreaterEqual ops.Invert ops.IsClose ops.IsFinite "
        "ops.IsInf ops.IsNan ops.Less ops.LessEqual ops.LogicalAnd ops.LogicalNot ops.LogicalOr ops.LogicalXor "
        "ops.NonZero ops.NotEqual ops.Rank ops.ReduceAll ops.ReduceAny ops.Shape ops.Size ops.TensorShape "
        "ops.Unique ops.all ops.any ops.argmax ops.argmin ops.argsort ops.argwhere ops.bitwise_and "
        "ops.bitwise_left_shift ops.bitwise_not ops.bitwise_or ops.bitwise_right_shift ops.bitwise_xor "
        "ops.count_nonzero ops.dtype ops.dyn_shape ops.eq ops.equal ops.floor_div ops.floor_divide ops.ge "
        "ops.greater ops.greater_equal ops.gt ops.invert ops.is_floating_point ops.is_tensor ops.isclose "
        "ops.isfinite ops.isinf ops.isnan ops.le ops.less ops.less_equal ops.logical_and ops.logical_not "
        "ops.logical_or ops.logical_xor ops.lt ops.ne ops.nonzero ops.not_equal ops.numel ops.rank "
        "ops.searchsorted ops.shape ops.size ops.tensor_floordiv ops.tensor_ge ops.tensor_gt ops.tensor_le "
        "ops.tensor_lt ops.tril_indices ops.triu_indices ops.tuple_to_array ops.unique mnp.all mnp.allclose "
        "mnp.any mnp.argmax mnp.argmin mnp.argsort mnp.array_equal mnp.bincount mnp.bitwise_and mnp.bitwise_or "
        "mnp.bitwise_xor mnp.count_nonzero mnp.divmod mnp.equal mnp.floor_divide mnp.greater mnp.greater_equal "
        "mnp.histogram mnp.isclose mnp.isfinite mnp.isinf mnp.isnan mnp.less mnp.less_equal mnp.logical_and "
        "mnp.logical_not mnp.logical_or mnp.logical_xor mnp.ndim mnp.nonzero mnp.not_equal mnp.shape mnp.size "
        "mnp.unique a.all a.any a.argmax a.argmin a.argsort a.asnumpy a.bitwise_and a.bitwise_left_shift "
        "a.bitwise_not a.bitwise_or a.bitwise_right_shift a.bitwise_xor a.bool a.byte a.count_nonzero a.dim a.eq "
        "a.equal a.floor_div a.floor_divide a.ge a.greater a.greater_equal a.gt a.has_init a.int a.is_contiguous "
        "a.is_floating_point a.is_signed a.is_symbolic a.isclose a.isfinite a.isinf a.isnan a.item a.itemsize "
        "a.le a.less a.less_equal a.logical_and a.logical_not a.logical_or a.logical_xor a.long a.lt a.nbytes "
        "a.ndim a.ne a.nelement a.nonzero a.not_equal a.numel a.numpy a.shape a.short a.size a.strides a.tolist "
        "a.unique "
    ),
    "it moves, copies or chooses elements; the operation is compared in tests/unit/graph/autodiff": (
        "ops.BroadcastTo ops.Cast ops.Concat ops.Depend ops.DepthToSpace ops.Diag ops.ExpandDims ops.Flatten "
        "ops.GatherNd ops.GatherV2 ops.Identity ops.MakeTuple ops.MaskedFill ops.MaskedSelect ops.Meshgrid "
        "ops.MirrorPad ops.OneHot ops.Pack ops.Pad ops.PadV3 ops.Reshape ops.ResizeBilinear ops.ResizeBilinearV2 "
        "ops.ResizeNearestNeighbor ops.ResizeNearestNeighborV2 ops.ReverseSequence ops.ReverseV2 ops.Slice "
        "ops.SpaceToDepth ops.Split ops.SplitV ops.SplitWithSize ops.Squeeze ops.Stack ops.StridedSlice ops.Tile "
        "ops.Transpose ops.Tril ops.Triu ops.TupleGetItem ops.Unpack ops.Unstack ops.broadcast_to ops.cast "
        "ops.cat ops.chunk ops.concat ops.concatenate ops.depend ops.diag ops.diagonal ops.expand_as "
        "ops.expand_dims ops.flatten ops.flip ops.fliplr ops.flipud ops.gather_nd ops.getitem ops.hstack "
        "ops.identity ops.index_fill ops.interpolate ops.itemset ops.masked_fill ops.masked_select ops.meshgrid "
        "ops.movedim ops.narrow ops.one_hot ops.pack ops.pad ops.permute ops.pixel_shuffle ops.pixel_unshuffle "
        "ops.ravel ops.repeat_interleave ops.reshape ops.reshape_as ops.reverse ops.reverse_sequence ops.roll "
        "ops.rot90 ops.scalar_to_tensor ops.setitem ops.slice ops.split ops.squeeze ops.stack ops.strided_slice "
        "ops.swapaxes ops.t ops.take ops.tensor_split ops.tile ops.transpose ops.tril ops.triu ops.unbind "
        "ops.unflatten ops.unfold ops.unsqueeze ops.unstack ops.vstack nn.ConstantPad1d nn.ConstantPad2d "
        "nn.ConstantPad3d nn.Flatten nn.Identity nn.Pad nn.PixelShuffle nn.PixelUnshuffle nn.ReflectionPad1d "
        "nn.ReflectionPad2d nn.ReplicationPad1d nn.ReplicationPad2d nn.Upsample nn.ZeroPad2d mnp.append "
        "mnp.atleast_1d mnp.atleast_2d mnp.bfloat16 mnp.broadcast_arrays mnp.broadcast_to mnp.column_stack "
        "mnp.concatenate mnp.copy mnp.diag mnp.diagonal mnp.dsplit mnp.dstack mnp.expand_dims mnp.flip mnp.fliplr "
        "mnp.flipud mnp.hsplit mnp.hstack mnp.identity mnp.meshgrid mnp.moveaxis mnp.pad mnp.ravel mnp.repeat "
        "mnp.reshape mnp.roll mnp.rot90 mnp.select mnp.split mnp.squeeze mnp.stack mnp.swapaxes mnp.take mnp.tile "
        "mnp.transpose mnp.tril mnp.triu mnp.vsplit mnp.vstack a.T a.astype a.astype_as a.bfloat16 a.broadcast_to "
        "a.chunk a.clone a.contiguous a.copy a.cpu a.detach a.diag a.diagonal a.double a.expand a.expand_as "
        "a.expand_dims a.flatten a.flip a.float a.gather a.gather_d a.gather_nd a.half a.identity a.index_fill "
        "a.index_select a.itemset a.mT a.masked_fill a.masked_select a.moveaxis a.movedim a.narrow a.permute "
        "a.ravel a.repeat a.repeat_interleave a.replace a.reshape a.reshape_as a.roll a.rot90 a.set_dtype a.split "
        "a.squeeze a.stop_gradient a.swapaxes a.swapdims a.t a.take a.tensor_split a.tile a.to a.to_tensor "
        "a.transpose a.tril a.triu a.type a.type_as a.unbind a.unflatten a.unsqueeze a.unstack a.value a.view "
        "a.view_as "
    ),
    "it is linear in each argument, without special points; the operation is compared in tests/unit/graph/autodiff": (
        "ops.BatchMatMul ops.BiasAdd ops.Conv2D ops.Conv3D ops.IndexAdd ops.MatMul ops.MatMulExt ops.ScatterNd "
        "ops.TensorScatterAdd ops.TensorScatterElements ops.TensorScatterSub ops.TensorScatterUpdate "
        "ops.UnsortedSegmentSum ops.addmm ops.addmv ops.baddbmm ops.batch_matmul ops.bias_add ops.bmm ops.conv1d "
        "ops.conv2d ops.conv3d ops.cross ops.dense ops.dot ops.einsum ops.index_add ops.inner ops.matmul ops.mm "
        "ops.mv ops.outer ops.scatter ops.scatter_nd ops.tensor_dot ops.tensor_scatter_add "
        "ops.tensor_scatter_elements ops.tensor_scatter_mul ops.tensor_scatter_sub ops.tensor_scatter_update "
        "ops.tensordot ops.trace ops.unsorted_segment_sum nn.Conv1d nn.Conv1dTranspose nn.Conv2d "
        "nn.Conv2dTranspose nn.Conv3d nn.Conv3dTranspose nn.Dense nn.Embedding nn.Linear mnp.convolve mnp.cross "
        "mnp.diff mnp.dot mnp.einsum mnp.inner mnp.matmul mnp.outer mnp.tensordot mnp.trace mnp.trapz a.addmm "
        "a.addmv a.baddbmm a.bmm a.dot a.inner a.matmul a.mm a.mv a.outer a.scatter a.tensor_scatter_add "
        "a.tensor_scatter_elements a.tensor_scatter_mul a.tensor_scatter_sub a.tensor_scatter_update a.trace "
    ),
    "it makes a tensor of sizes, numbers or random numbers": (
        "ops.Dropout ops.Eye ops.Fill ops.FillV2 ops.LinSpace ops.Ones ops.OnesLike ops.Range ops.StandardNormal "
        "ops.Tensor ops.Zeros ops.ZerosLike ops.arange ops.bernoulli ops.dropout ops.dropout1d ops.dropout2d "
        "ops.dropout3d ops.empty ops.eye ops.fill ops.from_numpy ops.full ops.full_like ops.gumbel_softmax "
        "ops.linspace ops.logspace ops.multinomial ops.new_ones ops.new_zeros ops.normal ops.ones ops.rand "
        "ops.rand_like ops.randint ops.randn ops.randn_like ops.randperm ops.range ops.standard_normal ops.tensor "
        "ops.uniform ops.zeros nn.Dropout nn.Dropout1d nn.Dropout2d nn.Dropout3d mnp.Tensor mnp.arange mnp.array "
        "mnp.asarray mnp.empty mnp.empty_like mnp.eye mnp.full mnp.full_like mnp.linspace mnp.logspace mnp.ones "
        "mnp.ones_like mnp.zeros mnp.zeros_like a.fill a.from_numpy a.new_ones a.new_zeros a.of "
    ),
    "it changes a tensor or a parameter where it lies; the function without the change is compared": (
        "ops.Assign ops.AssignAdd ops.AssignSub ops.assign ops.assign_add ops.assign_sub a.add_ a.assign_value "
        "a.clamp_ a.copy_ a.div_ a.fill_ a.init_data a.mul_ a.pow_ a.sub_ a.zero_ "
    ),
    "it is a type, a number, a base class or a tool, and no function of tensors": (
        "ops.Custom ops.GradOperation ops.HistogramSummary ops.HookBackward ops.HyperMap ops.ImageSummary "
        "ops.InsertGradientOf ops.Map ops.MultitypeFuncGraph ops.Parameter ops.ParameterTuple ops.Primitive "
        "ops.PrimitiveWithCheck ops.PrimitiveWithInfer ops.Print ops.ScalarSummary ops.TensorSummary "
        "ops.constexpr ops.get_grad ops.grad ops.jacfwd ops.jacrev ops.jvp ops.partial ops.prim_attr_register "
        "ops.print_ ops.several ops.value_and_grad ops.vjp ops.vmap nn.Cell nn.CellDict nn.CellList "
        "nn.DynamicLossScaleUpdateCell nn.FixedLossScaleUpdateCell nn.ForwardValueAndGrad nn.LossBase "
        "nn.SequentialCell nn.TrainOneStepCell nn.TrainOneStepWithLossScaleCell nn.WithEvalCell nn.WithLossCell "
        "ops.AllGather ops.AllReduce ops.AlltoAll ops.Barrier ops.Broadcast ops.NeighborExchange ops.ReduceOp "
        "ops.ReduceScatter ops.barrier nn.DistributedGradReducer nn.PipelineGradReducer "
        "nn.get_activation nn.get_metric_fn nn.get_metrics nn.names "
        "mnp.apply_along_axis mnp.bool_ mnp.e mnp.float16 mnp.float32 "
        "mnp.float64 mnp.float_ mnp.inf mnp.int16 mnp.int32 mnp.int64 mnp.int8 mnp.int_ mnp.nan mnp.newaxis "
        "mnp.pi mnp.uint mnp.uint16 mnp.uint32 mnp.uint64 mnp.uint8 a.register_hook "
    ),
    "it is a metric, an optimizer or a schedule": (
        "nn.Accuracy nn.Adagrad nn.Adam nn.AdamWeightDecay nn.ConfusionMatrix nn.CosineDecayLR "
        "nn.CosineSimilarity nn.ExponentialDecayLR nn.F1 nn.FTRL nn.Fbeta nn.InverseDecayLR nn.Lamb "
        "nn.LearningRateSchedule nn.Loss nn.MAE nn.MSE nn.Metric nn.Momentum nn.NaturalExpDecayLR nn.Optimizer "
        "nn.Perplexity nn.PolynomialDecayLR nn.Precision nn.RMSProp nn.ROC nn.Recall nn.SGD "
        "nn.Top1CategoricalAccuracy nn.Top5CategoricalAccuracy nn.TopKCategoricalAccuracy nn.WarmUpLR nn.auc "
        "nn.cosine_decay_lr nn.exponential_decay_lr nn.inverse_decay_lr nn.natural_exp_decay_lr "
        "nn.piecewise_constant_lr nn.polynomial_decay_lr nn.warmup_lr "
    ),
    "it is made of functions that are compared": (
        "nn.GRU nn.GRUCell nn.LSTM nn.LSTMCell nn.MultiheadAttention nn.RNN nn.RNNCell nn.Transformer "
        "nn.TransformerDecoder nn.TransformerDecoderLayer nn.TransformerEncoder nn.TransformerEncoderLayer "
    ),
}

EXCLUDED: dict[str, str] = {name: reason for reason, names in _NAMES.items() for name in names.split()}
"""From a name to the reason."""
