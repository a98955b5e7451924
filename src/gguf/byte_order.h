#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "gguf/types.h"

namespace stoker::gguf {

static_assert(std::endian::native == std::endian::little, "Stoker runs on little-endian machines only");

inline uint8_t swap_bytes(uint8_t v) { return v; }
inline uint16_t swap_bytes(uint16_t v) { return __builtin_bswap16(v); }
inline uint32_t swap_bytes(uint32_t v) { return __builtin_bswap32(v); }
inline uint64_t swap_bytes(uint64_t v) { return __builtin_bswap64(v); }

namespace detail {
template <size_t kBytes>
struct Bits;
template <>
struct Bits<1> {
  using Type = uint8_t;
};
template <>
struct Bits<2> {
  using Type = uint16_t;
};
template <>
struct Bits<4> {
  using Type = uint32_t;
};
template <>
struct Bits<8> {
  using Type = uint64_t;
};
}  // namespace detail

/// A number at any address, stored in the given byte order.
template <class T>
T load(const std::byte* from, bool big_endian) {
  typename detail::Bits<sizeof(T)>::Type bits;
  std::memcpy(&bits, from, sizeof bits);
  return std::bit_cast<T>(big_endian ? swap_bytes(bits) : bits);
}

/// The bytes of `value` in the given byte order.
template <class T>
void store(T value, bool big_endian, std::byte* to) {
  auto bits = std::bit_cast<typename detail::Bits<sizeof(T)>::Type>(value);
  if (big_endian) bits = swap_bytes(bits);
  std::memcpy(to, &bits, sizeof bits);
}

/// Whether `swap_blocks` knows the type. Of IQ2_XXS, IQ3_XXS and IQ1_M it is not settled how a big-endian file looks:
/// their packed words overlap byte arrays, and programs disagree on which of the two is swapped.
bool can_swap(TensorType type);

/// Turns every multi-byte field of whole blocks round, in place: host order to big-endian or back.
/// `bytes` is a multiple of the block size, and `can_swap(type)` holds.
void swap_blocks(TensorType type, std::span<std::byte> bytes);

}  // namespace stoker::gguf
