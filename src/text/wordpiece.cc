#include <algorithm>

#include "base/str_cat.h"
#include "text/algorithm.h"
#include "text/bert_words.h"

namespace stoker::text {
namespace {

/// Words with more characters are unknown, as in BERT.
constexpr size_t kMostChars = 100;

// WordPiece: each word becomes the longest tokens from left to right. Tokens that begin a word have U+2581 before them.
class WordPiece final : public Algorithm {
 public:
  WordPiece(Vocab& vocab, BertForm form) : vocab_(vocab), form_(form), unknown_(vocab.role(Role::kUnknown)) {
    const size_t n_same = table_.insert_all(vocab.pieces, vocab.reachable);
    for (size_t id = 0; id < vocab.size(); ++id)
      if (vocab.reachable[id]) longest_ = std::max(longest_, vocab.pieces[id].size());
    if (n_same > 0)
      vocab.notes.push_back(
          str_cat("tokenizer: ", n_same, " tokens have the text of another one: the highest id counts"));
    if (unknown_ == kNoToken)
      vocab.notes.push_back("tokenizer: there is no unknown token: words without tokens are lost");
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    BertWords words(text, form_);
    std::string marked(kBlankSign);
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      const size_t before = out.size();
      marked.resize(kBlankSign.size());
      marked += word;
      if (words.n_chars() <= kMostChars && cover(marked, out)) continue;
      out.resize(before);
      if (unknown_ != kNoToken) out.push_back(unknown_);
    }
  }

 private:
  bool cover(std::string_view word, std::vector<TokenId>& out) const {
    // The sign alone is no part of a word.
    size_t least = kBlankSign.size() + 1;
    while (!word.empty()) {
      size_t size = std::min(word.size(), longest_);
      TokenId id = kNoToken;
      for (; size >= least && (id = table_.find(vocab_.pieces, word.substr(0, size))) == kNoToken; --size) {
      }
      if (id == kNoToken) return false;
      out.push_back(id);
      word.remove_prefix(size);
      least = 1;
    }
    return true;
  }

  const Vocab& vocab_;
  BertForm form_;
  TokenId unknown_;
  TextTable table_;
  size_t longest_ = 0;
};

}  // namespace

std::unique_ptr<Algorithm> make_wordpiece(const Source& source, Vocab& vocab) {
  const bool lowercase = source.lowercase.value_or(true);
  return std::make_unique<WordPiece>(
      vocab, BertForm{.lowercase = lowercase, .strip_accents = source.strip_accents.value_or(lowercase)});
}

}  // namespace stoker::text
