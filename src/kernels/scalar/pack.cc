#include "kernels/scalar/pack.h"

#include <algorithm>
#include <cstring>

#include "kernels/r16.h"
#include "kernels/scalar/group.h"
#include "kernels/scalar/weight.h"
#include "quant/all.h"

namespace stoker::kernels::scalar {
namespace {

// Copies `bytes` from `offset` of the row; zeros where the row (an odd number of BF16) ends before.
void copy_part(const std::byte* row, int64_t row_bytes, int64_t offset, int64_t bytes, std::byte* out) {
  const int64_t there = std::clamp<int64_t>(row_bytes - offset, 0, bytes);
  std::memcpy(out, row + offset, static_cast<size_t>(there));
  std::memset(out + there, 0, static_cast<size_t>(bytes - there));
}

}  // namespace

template <class Type>
void pack(const PackArgs& args) noexcept {
  constexpr R16Layout kLayout = r16_layout(Type::kType);
  // Padding at the end and missing rows: all bytes zero is the weight zero in every type.
  std::memset(args.group, 0, static_cast<size_t>(r16_group_bytes(kLayout, args.k)));
  const int64_t n_blocks = r16_blocks(kLayout, args.k);
  const int64_t row_bytes = args.k / Type::kWeights * static_cast<int64_t>(sizeof(typename Type::Block));
  for (int64_t block = 0; block < n_blocks; ++block) {
    for (int lane = 0; lane < args.n_rows; ++lane) {
      const std::byte* row = args.rows + lane * args.row_bytes;
      const int64_t base = block * kLayout.block_bytes;
      std::byte* word = args.group + r16_lines_at(kLayout, args.k, block) + 4 * lane;
      for (int w = 0; w < kLayout.words; ++w) {
        copy_part(row, row_bytes, base + kLayout.word_offset + 4 * w, 4, word + w * kLineBytes);
      }
      copy_part(row, row_bytes, base + kLayout.header_offset, kLayout.header_bytes,
                args.group + r16_headers_at(kLayout, block) + lane * kLayout.header_bytes);
    }
  }
}

template <class Type>
void row(const RowArgs& args) noexcept {
  constexpr R16Layout kLayout = r16_layout(Type::kType);
  const std::byte* group = args.w + args.row / kGroupRows * args.group_bytes;
  const int lane = static_cast<int>(args.row % kGroupRows);
  if constexpr (quant::PlainType<Type>) {
    for (int64_t k = 0; k < args.k; ++k) args.out[k] = read_weight<Type>(group, k, lane);
  } else {
    for (int64_t block = 0; block < r16_blocks(kLayout, args.k); ++block) {
      quant::decode_block<Type>(read_block<Type>({group, args.k, lane}, block), args.out + block * Type::kWeights);
    }
  }
}

#define STOKER_INSTANTIATE(Type)                             \
  template void pack<quant::Type>(const PackArgs&) noexcept; \
  template void row<quant::Type>(const RowArgs&) noexcept;

STOKER_INSTANTIATE(F32)
STOKER_INSTANTIATE(F16)
STOKER_INSTANTIATE(BF16)
STOKER_INSTANTIATE(Q4_0)
STOKER_INSTANTIATE(Q4_1)
STOKER_INSTANTIATE(Q5_0)
STOKER_INSTANTIATE(Q5_1)
STOKER_INSTANTIATE(Q8_0)
STOKER_INSTANTIATE(IQ4NL)
STOKER_INSTANTIATE(MXFP4)
STOKER_INSTANTIATE(Q2K)
STOKER_INSTANTIATE(Q3K)
STOKER_INSTANTIATE(Q4K)
STOKER_INSTANTIATE(Q5K)
STOKER_INSTANTIATE(Q6K)
STOKER_INSTANTIATE(IQ4XS)

}  // namespace stoker::kernels::scalar
