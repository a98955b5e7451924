// The body of fill_matmul for sets with kernels and packers of every type; kIsa says which set.
using T = gguf::TensorType;
const struct {
  T type;
  const MatmulKernels& matmul;
  PackFn pack;
} entries[] = {
    {T::kF32, kMatmulF32, kPackF32},       {T::kF16, kMatmulF16, kPackF16},    {T::kBF16, kMatmulBf16, kPackBf16},
    {T::kQ4_0, kMatmulQ4_0, kPackQ4_0},    {T::kQ4_1, kMatmulQ4_1, kPackQ4_1}, {T::kQ5_0, kMatmulQ5_0, kPackQ5_0},
    {T::kQ5_1, kMatmulQ5_1, kPackQ5_1},    {T::kQ8_0, kMatmulQ8_0, kPackQ8_0}, {T::kIQ4NL, kMatmulIq4Nl, kPackIq4Nl},
    {T::kMXFP4, kMatmulMxfp4, kPackMxfp4}, {T::kQ2K, kMatmulQ2K, kPackQ2K},    {T::kQ3K, kMatmulQ3K, kPackQ3K},
    {T::kQ4K, kMatmulQ4K, kPackQ4K},       {T::kQ5K, kMatmulQ5K, kPackQ5K},    {T::kQ6K, kMatmulQ6K, kPackQ6K},
    {T::kIQ4XS, kMatmulIq4Xs, kPackIq4Xs},
};
for (const auto& entry : entries) {
  const auto id = static_cast<size_t>(entry.type);
  table.matmul[id] = entry.matmul;
  table.pack[id] = entry.pack;
  table.matmul_isa[id] = kIsa;
}
