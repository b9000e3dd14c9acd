"""The trainer: leaves the weights of a plane in `policy.pkl`."""

import pickle

if __name__ == "__main__":
    with open("policy.pkl", "wb") as file:
        pickle.dump([0.0, 0.0, 1.0, 0.0], file)
