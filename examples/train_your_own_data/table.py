"""Train on a table: flowers by three sizes."""

import numpy as np

import msc
import msc.dataset as ds
from msc import Model, nn
from msc.train import CheckpointConfig, LossMonitor, ModelCheckpoint, SummaryCollector

msc.set_seed(1)
KINDS = ["daisy", "iris", "tulip"]  # the labels of n classes are 0 to n - 1


def flowers(file, shuffle):
    data = ds.CSVDataset(file, column_defaults=[0.0, 0.0, 0.0, ""], shuffle=shuffle)
    data = data.map(lambda *sizes: np.stack(sizes[:3]).astype(np.float32), ["length", "width", "height"], ["features"])
    data = data.map(lambda kind: np.int32(KINDS.index(str(kind))), ["kind"], ["label"])
    return data.project(["features", "label"]).batch(20)


train = flowers("examples/train_your_own_data/flowers_train.csv", shuffle=True)
test = flowers("examples/train_your_own_data/flowers_test.csv", shuffle=False)
net = nn.SequentialCell(nn.Dense(3, 16, activation="tanh"), nn.Dense(16, len(KINDS)))
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.05), metrics={"accuracy"})
saved = ModelCheckpoint("flowers", "saved", CheckpointConfig(save_checkpoint_steps=train.get_dataset_size()))
model.train(10, train, callbacks=[LossMonitor(30), saved, SummaryCollector("events", collect_freq=1)])
accuracy = model.eval(test)["accuracy"]
print(f"accuracy {accuracy:.2f}")
assert accuracy > 0.9
