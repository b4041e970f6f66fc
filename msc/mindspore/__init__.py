"""What programs written for MindSpore name beside the library itself: paths of modules, internals, devices."""
