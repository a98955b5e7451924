// The packers that matmul_types.h of every set declares. Stands outside of the unnamed namespace.
const PackFn kPackF32 = pack<gguf::TensorType::kF32>;
const PackFn kPackF16 = pack_f16;
const PackFn kPackBf16 = pack<gguf::TensorType::kBF16>;
const PackFn kPackQ4_0 = pack<gguf::TensorType::kQ4_0>;
const PackFn kPackQ4_1 = pack<gguf::TensorType::kQ4_1>;
const PackFn kPackQ5_0 = pack<gguf::TensorType::kQ5_0>;
const PackFn kPackQ5_1 = pack<gguf::TensorType::kQ5_1>;
const PackFn kPackQ8_0 = pack<gguf::TensorType::kQ8_0>;
const PackFn kPackIq4Nl = pack<gguf::TensorType::kIQ4NL>;
const PackFn kPackMxfp4 = pack<gguf::TensorType::kMXFP4>;
const PackFn kPackQ2K = pack<gguf::TensorType::kQ2K>;
const PackFn kPackQ3K = pack<gguf::TensorType::kQ3K>;
const PackFn kPackQ4K = pack<gguf::TensorType::kQ4K>;
const PackFn kPackQ5K = pack<gguf::TensorType::kQ5K>;
const PackFn kPackQ6K = pack<gguf::TensorType::kQ6K>;
const PackFn kPackIq4Xs = pack<gguf::TensorType::kIQ4XS>;
