// The body of fill_matmul for sets that add kernels for many rows, of every type of integers; kIsa says which set.
using T = gguf::TensorType;
const struct {
  T type;
  MatmulFn many;
} entries[] = {
    {T::kQ4_0, kManyQ4_0},   {T::kQ4_1, kManyQ4_1},   {T::kQ5_0, kManyQ5_0},   {T::kQ5_1, kManyQ5_1},
    {T::kQ8_0, kManyQ8_0},   {T::kIQ4NL, kManyIq4Nl}, {T::kMXFP4, kManyMxfp4}, {T::kQ2K, kManyQ2K},
    {T::kQ3K, kManyQ3K},     {T::kQ4K, kManyQ4K},     {T::kQ5K, kManyQ5K},     {T::kQ6K, kManyQ6K},
    {T::kIQ4XS, kManyIq4Xs},
};
for (const auto& entry : entries) {
  const auto id = static_cast<size_t>(entry.type);
  table.matmul[id].many = entry.many;
  table.matmul_isa[id] = kIsa;
}
