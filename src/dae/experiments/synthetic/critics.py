"""The critics of many seeds, small networks side by side, with their gradients written out.

A walk along the chain visits every state once, in order, whatever is done in it. So the inputs of a critic are always
the same: the one-hot codes of all states, which together are the identity matrix I. Its first layer computes
W I + b = W + b; there is no product to do. And all walks of an iteration need the outputs at the same states: they are
computed once, not once a walk, and the gradients of the walks meet there. Both change nothing but the order in which
sums are added.

Matrices have the layout of PyTorch's Linear, (outputs, inputs), with one axis for the seeds before; columns are states.
"""

from collections.abc import Callable

import torch
from torch import Tensor

_relu_backward = torch.ops.aten.threshold_backward.grad_input


class Critics:
    """S networks with two hidden layers, (S, heads, L) outputs for L states, and an Adam for all of them."""

    def __init__(
        self,
        uniform: Callable[[float, tuple[int, ...]], Tensor],
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
            tensor.grad = torch.empty_like(tensor)
        self._adam = torch.optim.Adam([*self.weights, *self.biases], lr=learning_rate, eps=eps, fused=True)
        # All memory that a step needs, so that none is asked for while it runs.
        self._first, self._second, self._upstream = (torch.empty_like(self.weights[0]) for _ in range(3))

    def forward(self) -> Tensor:
        """Return the outputs at all states, (S, heads, L)."""
        torch.add(self.weights[0], self.biases[0], out=self._first).relu_()
        torch.baddbmm(self.biases[1], self.weights[1], self._first, out=self._second).relu_()
        return torch.baddbmm(self.biases[2], self.weights[2], self._second)

    def step(self, gradient: Tensor) -> None:
        """Take a step of Adam, given the loss's gradient with respect to the outputs of the last `forward`."""
        upstream, first = self._upstream, self.weights[0].grad
        assert first is not None
        self._gradients(2, gradient, self._second)
        torch.bmm(self.weights[2].mT, gradient, out=upstream)
        _relu_backward(upstream, self._second, 0, grad_input=upstream)
        self._gradients(1, upstream, self._first)
        torch.bmm(self.weights[1].mT, upstream, out=first)
        _relu_backward(first, self._first, 0, grad_input=first)  # this is the weights' gradient: the input is I
        torch.sum(first, -1, keepdim=True, out=self.biases[0].grad)
        self._adam.step()

    def _gradients(self, layer: int, upstream: Tensor, inputs: Tensor) -> None:
        torch.bmm(upstream, inputs.mT, out=self.weights[layer].grad)
        torch.sum(upstream, -1, keepdim=True, out=self.biases[layer].grad)
