"""The lineage's ResNet10 in PyTorch, written from its description, as an oracle."""

import torch
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, under the lineage's parameter names."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.C1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.BN1 = nn.BatchNorm2d(outputs)
        self.C2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.BN2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        if inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.BNshortcut = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.BN2(self.C2(self.relu(self.BN1(self.C1(x)))))
        if hasattr(self, "shortcut"):
            x = self.BNshortcut(self.shortcut(x))
        return self.relu(x + y)


class Feature(nn.Module):
    """The trunk; the numbers of its parts are those of the checkpoints' keys."""

    def __init__(self, repeats: int = 1) -> None:
        super().__init__()
        blocks, inputs = [], 64
        for stage, outputs in enumerate((64, 128, 256, 512)):
            for repeat in range(repeats):
                stride = 2 if stage and not repeat else 1
                blocks.append(Block(inputs, outputs, stride))
                inputs = outputs
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            *blocks,
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.trunk(images).mean((2, 3))


class Classifier(nn.Module):
    """Trunk and linear classifier: the module whose state the checkpoints hold."""

    def __init__(self, num_classes: int = 64, repeats: int = 1) -> None:
        super().__init__()
        self.feature = Feature(repeats)
        self.classifier = nn.Linear(512, num_classes)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.feature(images))
