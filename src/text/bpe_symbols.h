#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/merge.h"
#include "text/merge_table.h"
#include "text/source.h"
#include "text/vocab.h"

namespace stoker::text {

/// The symbols and merges of a BPE vocabulary. A symbol is a token or, from the vocabulary's size on, a text that only
/// merges name. In byte-level vocabularies the texts are the bytes, not the characters that stand for them.
class BpeSymbols {
 public:
  /// Appends the texts of the symbols that are no tokens to the vocabulary's. kCorrupt: a merge that is not two parts.
  static Result<BpeSymbols> build(const Source& source, Vocab& vocab);

  bool is_token(int32_t symbol) const { return symbol >= 0 && static_cast<size_t>(symbol) < n_tokens_; }
  /// The token that `text` is as a whole, kNoToken if none.
  TokenId token(std::string_view text) const {
    int32_t symbol = table_.find(*keys_, text);
    return is_token(symbol) ? symbol : kNoToken;
  }
  /// Calls visit(text) for every text that symbols can become.
  template <class Visit>
  void for_texts(Visit visit) const {
    for (size_t id = 0; id < keys_->size(); ++id) visit((*keys_)[id]);
  }
  Merge merge(int32_t left, int32_t right) const { return merges_.find(left, right); }

  /// The symbols to start with: bytes, or characters (-1 for one without a symbol, or an invalid byte).
  void cut(std::string_view text, Symbols& out) const;
  /// The tokens of single bytes, for a text without a token of its own. Bytes without a token are lost, with a note.
  void append_bytes(std::string_view text, std::vector<TokenId>& out) const;

 private:
  friend class BpeLoader;
  TextForm form_ = TextForm::kMapped;
  size_t n_tokens_ = 0;
  const Texts* keys_ = nullptr;
  TextTable table_;
  MergeTable merges_;
  std::array<int32_t, 256> of_byte_{};      // Symbols of one-byte texts, -1 if none.
  std::array<TokenId, 256> byte_tokens_{};  // What each byte becomes when it stays alone.
};

}  // namespace stoker::text
