"""Features of pairs, such as a user and an item, for one parameter that is shared by all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.validation import LARGEST, finite_array

__all__ = ["product_features"]


def product_features(user: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
    """Features of every pair of one user and an item: all products of their features.

    The mean reward of user u and item a is then u^T Theta a, with one matrix Theta for all; the
    parameter is its entries, row by row: <vec(u a^T), vec(Theta)>.  So in the hybrid LinUCB (Li,
    Chu, Langford, Schapire, WWW 2010) and in bilinear bandits (Jun, Willett, Wright, Nowak, ICML
    2019).  A constant 1 among the features of the user lets items have a value for all users.

    Parameters
    ----------
    user : array_like, shape (p,)
        Features of the user.
    items : array_like, shape (k, q)
        Features of the items, one per row.

    Returns
    -------
    ndarray, shape (k, p q)
        One arm per row: the arms on offer to this user.
    """
    u = finite_array("user", user, (None,))
    a = finite_array("items", items, (None, None), hint=", one item per row")
    with np.errstate(over="ignore"):
        products: NDArray[np.float64] = u[None, :, None] * a[:, None, :]
    largest = np.abs(products).max()
    if largest > LARGEST:
        raise ValueError(
            f"products of features must not exceed {LARGEST:g}, got {largest:g}: scale the features"
        )
    return products.reshape(len(a), -1)
