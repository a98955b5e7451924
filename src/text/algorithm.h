#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/pretokenizer.h"
#include "text/source.h"
#include "text/vocab.h"

namespace stoker::text {

/// Turns text without special tokens into ids. Threads: from any thread.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  /// `at_start`: nothing stands before it, or a special token does.
  virtual void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const = 0;
};

/// Adds to `vocab.notes`; both `vocab` and, for BPE, `pre` are kept by reference.
Result<std::unique_ptr<Algorithm>> make_bpe(const Source& source, Vocab& vocab, const Pretokenizer& pre);
Result<std::unique_ptr<Algorithm>> make_spm(const Source& source, Vocab& vocab, bool add_space_prefix);
std::unique_ptr<Algorithm> make_wordpiece(const Source& source, Vocab& vocab);
/// kCorrupt, kUnsupported: the normaliser's table, a token too long.
Result<std::unique_ptr<Algorithm>> make_unigram(const Source& source, Vocab& vocab);
/// The hash of the format's own tests: each five bytes become one id.
std::unique_ptr<Algorithm> make_test_hash(const Vocab& vocab);

}  // namespace stoker::text
