"""Reading an ONNX file: protobuf messages checked and decoded, before any IR is built."""
