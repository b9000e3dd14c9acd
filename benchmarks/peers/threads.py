"""How many threads PyTorch is fastest with: small networks are often slower with two than with one."""

import time

import torch  # type: ignore[import-not-found] # it is in the peers' environment only


def choose(cores: int, *, batch: int, hidden: int) -> int:
    """Try one thread and as many as cores on updates of this size for a moment, and keep to the faster number."""
    spent = {count: _seconds(count, batch, hidden) for count in sorted({1, cores})}
    best = min(spent, key=lambda count: spent[count])
    torch.set_num_threads(best)
    return best


def _seconds(threads: int, batch: int, hidden: int) -> float:
    """The shortest of a few updates, because other work on the machine only ever makes them longer."""
    torch.set_num_threads(threads)
    net = torch.nn.Sequential(torch.nn.Linear(24, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, hidden))
    optimizer, x = torch.optim.Adam(net.parameters()), torch.randn(batch, 24)
    spent = []
    for _ in range(40):
        began = time.perf_counter()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        spent.append(time.perf_counter() - began)
    return sorted(spent)[len(spent) // 4]
