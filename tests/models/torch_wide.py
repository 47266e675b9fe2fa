"""Wide networks of the few-shot field in plain torch, with its names of tensors."""

import torch
from torch import nn
from torch.nn import functional as F


class WideBlock(nn.Module):
    """A block of WRN: a norm before each convolution."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.convShortcut = None
        if inputs != outputs:
            self.convShortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.bn1(x))
        if self.convShortcut is not None:
            x = self.convShortcut(y)
        return x + self.conv2(F.relu(self.bn2(self.conv1(y))))


class Stage(nn.Module):
    def __init__(self, repeats, inputs, outputs, stride):
        super().__init__()
        first = WideBlock(inputs, outputs, stride)
        rest = (WideBlock(outputs, outputs, 1) for _ in range(repeats - 1))
        self.layer = nn.Sequential(first, *rest)

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    def __init__(self, depth, widen):
        super().__init__()
        repeats, width = (depth - 4) // 6, 16 * widen
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.block1 = Stage(repeats, 16, width, 1)
        self.block2 = Stage(repeats, width, 2 * width, 2)
        self.block3 = Stage(repeats, 2 * width, 4 * width, 2)
        self.bn1 = nn.BatchNorm2d(4 * width)
        self.linear = nn.Linear(4 * width, 7)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return F.relu(self.bn1(x)).mean((2, 3))


class PoolingBlock(nn.Module):
    """A block of ResNet12: three convolutions and a max-pool."""

    def __init__(self, inputs, outputs):
        super().__init__()
        for i in (1, 2, 3):
            first = inputs if i == 1 else outputs
            setattr(self, f"conv{i}", nn.Conv2d(first, outputs, 3, 1, 1, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(outputs))
        self.downsample = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x):
        y = F.leaky_relu(self.bn1(self.conv1(x)), 0.1)
        y = F.leaky_relu(self.bn2(self.conv2(y)), 0.1)
        y = self.bn3(self.conv3(y)) + self.downsample(x)
        return F.max_pool2d(F.leaky_relu(y, 0.1), 2)


class ResNet12(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (3, 64, 160, 320, 640)
        for i in range(4):
            block = PoolingBlock(widths[i], widths[i + 1])
            setattr(self, f"layer{i + 1}", nn.Sequential(block))

    def forward(self, x):
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return torch.mean(x, (2, 3))
