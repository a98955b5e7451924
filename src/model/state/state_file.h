// A sequence's state in a file: what its positions left, the tokens of its text, and whose it is.
// Numbers are in the byte order of the machine. Format: docs/state-file.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "base/result.h"
#include "model/state/kv_pool.h"

namespace stoker::model {

/// "f16", "bf16", "f32", "q8_0".
std::string_view kv_type_name(kernels::KvType type);

/// Which model a state belongs to.
struct StateOwner {
  uint64_t identity = 0;  ///< identity_of
  std::string name{};     ///< For messages.
  int64_t n_vocab = 0;
};

/// Writes the whole state of `sequence`, which has read the first of `tokens`, at least one less than all. Does not
/// commit the file. kIo: the disk is full, before anything is written; or the system's reason. kUnsupported: nothing is
/// kept of a sequence. Bytes of the last page that belong to no position are written as they are.
Status write_state(const Sequence& sequence, std::span<const int32_t> tokens, const StateOwner& owner,
                   OutputFile& file);

/// A file that `write_state` wrote, or somebody else: nothing in it is believed before it is checked.
class StateFile {
 public:
  /// Reads and checks everything but the state itself. kNotFound, kIo. kCorrupt: no such file, cut off, or damaged.
  /// kUnsupported: another version. kInvalidArgument: the state of another model, or of other key-value memory.
  static Result<StateFile> open(const std::string& path, const KvLayout& layout, const StateOwner& owner);

  /// Of the text; the state is that behind the first `length` of them, which is at least one less than all.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t length() const { return length_; }

  /// A sequence with that state, which may grow to `positions` without allocating. kCorrupt: damaged; nothing is left
  /// in the pool. kOverloaded: the pool has too few pages or state slots.
  Result<Sequence> restore(KvPool& pool, int64_t positions) const;

 private:
  explicit StateFile(File file) : file_(std::move(file)) {}
  Status read_state(Sequence& sequence) const;
  File file_;
  std::vector<int32_t> tokens_;
  int64_t length_ = 0;
};

}  // namespace stoker::model
