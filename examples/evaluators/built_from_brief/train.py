"""Fixed: the command line. `python train.py` prints the comparable numbers."""

import argparse

from framework import evaluate_candidate

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-episodes", type=int, default=12)
    result = evaluate_candidate(parser.parse_args().train_episodes)
    print("---")
    for name, value in result.items():
        print(f"{name}: {value:.6f}")
