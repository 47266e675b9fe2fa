"""The systems that tune on each task, in PyTorch and plain loops, on the tiny network.

Images and orders are given: what is random is tested elsewhere.
"""

import torch
from torch import nn
from torch.nn import functional as F


def tensor(images):
    """Channels-last images of jax as torch wants them."""
    return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())


def linear(head):
    """A linear layer with the weights of ours."""
    layer = nn.Linear(*head["kernel"].shape)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(head["kernel"].T.copy()))
        layer.bias.copy_(torch.from_numpy(head["bias"].copy()))
    return layer


def classify_epochs(net, layer, optimisers, epochs, batch=4):
    """Cross-entropy in small batches; each epoch has images, labels and an order."""
    net.train()
    losses = []
    for images, labels, order in epochs:
        for start in range(0, len(order), batch):
            rows = order[start : start + batch].copy()
            loss = F.cross_entropy(layer(net(images[rows])), labels[rows])
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
            losses.append(loss.item())
    return losses


def class_means(feat, labels, classes):
    return torch.stack([feat[labels == c].mean(0) for c in range(classes)])


def lmm_pqs_loss(net, support, labels, pseudo, pseudo_labels, classes):
    """Triplets of supports and prototypes; large-margin cosines of pseudo queries."""
    feat, queries = net(support), net(pseudo)
    means = class_means(feat, labels, classes)
    each = [
        F.triplet_margin_loss(feat[i : i + 1], means[y][None], means[c][None], margin=1)
        for i, y in enumerate(labels.tolist())
        for c in range(classes)
        if c != y
    ]
    cosine = F.cosine_similarity(queries[:, None], means[None], dim=2)
    lowered = cosine - 0.35 * F.one_hot(pseudo_labels, classes)
    return torch.stack(each).mean() + F.cross_entropy(30 * lowered, pseudo_labels)


def conft_loss(far, near, labels, temperature):
    """One anchor and one negative at a time; partners are neighbours in the batch."""
    total, count, many = 0.0, len(near), len(far)

    def weight(a, b):
        return torch.exp(F.cosine_similarity(a, b, dim=0) / temperature)

    for i in range(count):
        others = [j for j in range(count) if labels[j] != labels[i]]
        alpha = many / (many + len(others))
        negative = sum(2 * alpha * weight(near[i], near[j]) for j in others)
        negative += sum(2 * (1 - alpha) * weight(near[i], far[d]) for d in range(many))
        partner = weight(near[i], near[i + 1 if i % 2 == 0 else i - 1])
        total = total - torch.log(partner / (partner + negative) + 1e-5)
    return total / count


def cosine_head(head):
    """torch's own weight norm, with the directions and gains of ours."""
    classes, width = head["direction"].shape
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(width, classes, bias=False))
    with torch.no_grad():
        values = layer.parametrizations.weight
        values.original0.copy_(torch.from_numpy(head["gain"].copy())[:, None])
        values.original1.copy_(torch.from_numpy(head["direction"].copy()))
    return layer


def cosine_loss(layer, feat, labels):
    return F.cross_entropy(
        layer(feat / (feat.norm(dim=1, keepdim=True) + 1e-5)), labels
    )


class Decoder(nn.Module):
    """Two linear layers, four deconvolutions, a convolution, the centre."""

    def __init__(self, width, size):
        super().__init__()
        self.edge, self.size = -(-size // 16), size
        self.hidden = nn.Linear(width, width)
        self.grid = nn.Linear(width, self.edge**2 * 32)
        channels = [(32, 32), (32, 32), (32, 64), (64, 64)]
        layers = [nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in channels]
        self.doubles = nn.ModuleList(layers)
        self.image = nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, feat):
        x = torch.relu(self.grid(torch.relu(self.hidden(feat))))
        # Ours has the channels last.
        x = x.reshape(len(feat), self.edge, self.edge, 32).permute(0, 3, 1, 2)
        for layer in self.doubles:
            x = torch.relu(layer(x))
        x = torch.sigmoid(self.image(x))
        margin = (x.shape[2] - self.size) // 2
        inside = slice(margin, margin + self.size)
        return x[:, :, inside, inside]


def decoder(params, size):
    """The decoder with the weights of ours."""
    made = Decoder(len(params["hidden"]["bias"]), size)
    copies = {
        made.hidden.weight: params["hidden"]["kernel"].T,
        made.hidden.bias: params["hidden"]["bias"],
        made.grid.weight: params["grid"]["kernel"].T,
        made.grid.bias: params["grid"]["bias"],
        made.image.weight: params["kernel"].transpose(3, 2, 0, 1),
        made.image.bias: params["bias"],
    }
    for number, layer in enumerate(made.doubles, 1):
        own = params[f"double{number}"]
        copies[layer.weight] = own["kernel"].transpose(0, 3, 1, 2)
        copies[layer.bias] = own["bias"]
    with torch.no_grad():
        for tensor, value in copies.items():
            tensor.copy_(torch.from_numpy(value.copy()))
    return made
