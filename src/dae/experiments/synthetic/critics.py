"""The critics of many seeds, small networks side by side, with their gradients written out.

A walk along the chain visits every state once, in order, whatever the actions. So the inputs of a critic are always
the same: the one-hot codes of all states, which together are the identity matrix I. Its first layer computes
W I + b = W + b; there is no product to do. And all walks of an iteration need the outputs at the same states: they are
computed once, not once per walk, and the gradients of the walks are summed there. Both change only the order in which
sums are added.

Matrices have the layout of PyTorch's Linear, (outputs, inputs), with one axis for the seeds before; columns are states.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_relu_backward = torch.ops.aten.threshold_backward.grad_input


class Critics:
    """Networks with two hidden layers, (S, heads, L) outputs for L states, and an Adam for all of them.

    Only the networks in the slice `present` are computed; the others output zeros and stay unchanged.
    """

    def __init__(
        self,
        uniform: Callable[[float, tuple[int, ...]], Tensor],
        present: slice,
        *,
        states: int,
        hidden: int,
        heads: int,
        learning_rate: float,
        eps: float,
    ) -> None:
        """`uniform(bound, shape)` draws weights in [−bound, bound] for each seed: here as PyTorch's Linear has them."""
        sizes = [(states, hidden), (hidden, hidden), (hidden, heads)]
        self.weights = [uniform(inputs**-0.5, (outputs, inputs)) for inputs, outputs in sizes]
        self.biases = [uniform(inputs**-0.5, (outputs, 1)) for inputs, outputs in sizes]
        for tensor in (*self.weights, *self.biases):
            tensor.grad = torch.zeros_like(tensor)
        self._adam = torch.optim.Adam([*self.weights, *self.biases], lr=learning_rate, eps=eps, fused=True)
        self._present = present
        self._layers = [
            _Layer(*(tensor[present] for tensor in (weight, bias, _gradient_of(weight), _gradient_of(bias))))
            for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        self._outputs = torch.zeros(len(self.weights[0]), heads, states, device=self.weights[0].device)
        # All memory that a step needs, so that none is allocated while it runs.
        self._first, self._second, self._upstream = (torch.empty_like(self._layers[0].weight) for _ in range(3))

    def forward(self) -> Tensor:
        """Return the outputs at all states, (S, heads, L)."""
        first, second, last = self._layers
        torch.add(first.weight, first.bias, out=self._first).relu_()
        torch.baddbmm(second.bias, second.weight, self._first, out=self._second).relu_()
        outputs = self._outputs.clone()
        torch.baddbmm(last.bias, last.weight, self._second, out=outputs[self._present])
        return outputs

    def step(self, gradient: Tensor) -> None:
        """Take a step of Adam, given the loss's gradient with respect to the outputs of the last `forward`."""
        first, second, last = self._layers
        upstream, gradient = self._upstream, gradient[self._present]
        last.receive(gradient, self._second)
        torch.bmm(last.weight.mT, gradient, out=upstream)
        _relu_backward(upstream, self._second, 0, grad_input=upstream)
        second.receive(upstream, self._first)
        torch.bmm(second.weight.mT, upstream, out=first.weight_gradient)  # the first layer's input is I
        _relu_backward(first.weight_gradient, self._first, 0, grad_input=first.weight_gradient)
        torch.sum(first.weight_gradient, -1, keepdim=True, out=first.bias_gradient)
        self._adam.step()


@dataclass(frozen=True)
class _Layer:
    """One layer of the networks that are present."""

    weight: Tensor  # (S, outputs, inputs)
    bias: Tensor  # (S, outputs, 1)
    weight_gradient: Tensor
    bias_gradient: Tensor

    def receive(self, upstream: Tensor, inputs: Tensor) -> None:
        """Fill in the gradients, given that of the layer's outputs and its inputs."""
        torch.bmm(upstream, inputs.mT, out=self.weight_gradient)
        torch.sum(upstream, -1, keepdim=True, out=self.bias_gradient)


def _gradient_of(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad
