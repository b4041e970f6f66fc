"""Gradients of every public function at drawn arguments beside central differences in f64.

For each function of `ops`, `mint`, `numpy` and `scipy.linalg`, and each method of `Tensor`, arguments are drawn until
calls succeed. A result of floats must have the derivatives that central differences find, or an error must refuse
them; a gradient of zeros beside differences is what this looks for. `python -m tests.drawn_gradients` tries all.
"""
