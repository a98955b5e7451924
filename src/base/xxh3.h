#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace stoker {

/// XXH3-64 (seed 0) of bytes that come in pieces.
class Xxh3 {
 public:
  Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  ~Xxh3();
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
