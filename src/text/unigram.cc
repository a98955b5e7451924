#include <algorithm>
#include <limits>
#include <utility>

#include "base/str_cat.h"
#include "text/algorithm.h"
#include "text/charsmap.h"
#include "text/prefixes.h"
#include "text/utf8.h"
#include "text/word_cuts.h"

namespace stoker::text {
namespace {

/// An unknown character is so much worse than the worst token.
constexpr double kUnknownPenalty = 10;
/// Of a token, in bytes: bounds the work per character.
constexpr size_t kLongestPiece = 1024;

// SentencePiece's unigram model: of all ways to cut a text into tokens the one whose scores have the largest sum.
class Unigram final : public Algorithm {
 public:
  Unigram(const Source& source, Vocab& vocab, Charsmap charsmap)
      : vocab_(vocab),
        charsmap_(std::move(charsmap)),
        add_space_prefix_(source.add_space_prefix.value_or(false)),
        merge_spaces_(source.remove_extra_whitespaces),
        unknown_(vocab.role(Role::kUnknown)) {
    std::vector<bool> used = vocab.reachable;
    float worst = std::numeric_limits<float>::infinity();
    scores_.reserve(vocab.size());
    for (size_t id = 0; id < vocab.size(); ++id) {
      scores_.push_back(static_cast<float>(source.score(id)));
      used[id] = used[id] && vocab.kinds[id] == TokenKind::kNormal;
      if (used[id]) worst = std::min(worst, scores_[id]);
      if (used[id]) cuts_.learn(vocab.pieces[id]);
    }
    unknown_score_ =
        (worst < std::numeric_limits<float>::infinity() ? static_cast<double>(worst) : 0) - kUnknownPenalty;
    if (const size_t n_same = prefixes_.build(vocab.pieces, used); n_same > 0)
      vocab.notes.push_back(
          str_cat("tokenizer: ", n_same, " tokens have the text of another one: the highest id counts"));
    const auto& bytes = vocab.byte_tokens;
    has_bytes_ = std::find(bytes.begin(), bytes.end(), kNoToken) == bytes.end();
    if (!has_bytes_ && unknown_ == kNoToken)
      vocab.notes.push_back("tokenizer: there is no unknown token: characters without a token are lost");
  }

  void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const override {
    const std::string normal = normalize(text, at_start);
    Path path;
    bool after_unknown = false;
    for (size_t pos = 0, end; pos < normal.size(); pos = end) {
      end = cuts_.next(normal, pos);
      const std::string_view word = std::string_view(normal).substr(pos, end - pos);
      find_path(word, path);
      append(word, path, after_unknown, out);
    }
  }

 private:
  /// The best way to each place of a text: by which token from where.
  struct Place {
    double score = 0;
    TokenId id = kNoToken;  // kNoToken: a character that has none.
    uint32_t size = 0;      // 0: nothing leads here.
  };
  struct Path {
    std::vector<Place> places;
    std::vector<uint32_t> ends;  // Of the tokens chosen, last first.
  };

  /// Replaced characters, U+2581 for spaces.
  std::string normalize(std::string_view text, bool at_start) const {
    std::string out;
    out.reserve(text.size() + text.size() / 4 + kBlankSign.size());
    // A space is due before what comes next; several are one where they are merged, and none is left at the end.
    bool due = add_space_prefix_ && at_start, any = false;
    const auto add = [&](std::string_view part) {
      for (const char c : part) {
        if (c == ' ') {
          if (merge_spaces_) {
            due = due || any;
            continue;
          }
          if (std::exchange(due, false)) out += kBlankSign;
          out += kBlankSign;
          continue;
        }
        if (std::exchange(due, false)) out += kBlankSign;
        any = true;
        out += c;
      }
    };
    for (size_t pos = 0; pos < text.size();) {
      const Charsmap::Match match = charsmap_.longest(text.substr(pos));
      if (match.size > 0) {
        add(match.replacement);
        pos += match.size;
        continue;
      }
      const Utf8Char c = decode_utf8(text.substr(pos));
      add(c.valid ? text.substr(pos, c.size) : "\uFFFD");
      pos += c.size;
    }
    return out;
  }

  void find_path(std::string_view word, Path& path) const {
    path.places.assign(word.size() + 1, {});
    Place* places = path.places.data();
    for (size_t pos = 0; pos < word.size();) {
      const size_t size = decode_utf8(word.substr(pos)).size;
      const double before = places[pos].score;
      bool has_token = false;
      const auto offer = [&](TokenId id, size_t n, double score) {
        Place& place = places[pos + n];
        if (place.size == 0 || score > place.score) place = {score, id, static_cast<uint32_t>(n)};
      };
      prefixes_.each(vocab_.pieces, word.substr(pos), [&](TokenId id, size_t n) {
        has_token = has_token || n == size;
        offer(id, n, before + static_cast<double>(scores_[static_cast<size_t>(id)]));
      });
      if (!has_token) offer(kNoToken, size, before + unknown_score_);
      // Tokens end between characters, but for those of broken files.
      do ++pos;
      while (pos < word.size() && places[pos].size == 0);
    }
  }

  void append(std::string_view word, Path& path, bool& after_unknown, std::vector<TokenId>& out) const {
    path.ends.clear();
    for (size_t end = word.size(); end > 0; end -= path.places[end].size)
      path.ends.push_back(static_cast<uint32_t>(end));
    for (auto end = path.ends.rbegin(); end != path.ends.rend(); ++end) {
      const Place& place = path.places[*end];
      if (place.id != kNoToken) {
        out.push_back(place.id);
      } else if (has_bytes_) {
        for (const char c : word.substr(*end - place.size, place.size))
          out.push_back(vocab_.byte_tokens[static_cast<uint8_t>(c)]);
      } else if (!after_unknown && unknown_ != kNoToken) {
        out.push_back(unknown_);  // One for all that follow each other.
      }
      after_unknown = place.id == kNoToken;
    }
  }

  const Vocab& vocab_;
  Charsmap charsmap_;
  bool add_space_prefix_, merge_spaces_, has_bytes_ = false;
  TokenId unknown_;
  double unknown_score_ = 0;
  std::vector<float> scores_;
  Prefixes prefixes_;
  WordCuts cuts_;
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_unigram(const Source& source, Vocab& vocab) {
  for (size_t id = 0; id < vocab.size(); ++id) {
    if (vocab.pieces[id].size() > kLongestPiece)
      return Error{ErrorCode::kUnsupported, str_cat("tokenizer.ggml.tokens: token ", id, " has ",
                                                    vocab.pieces[id].size(), " bytes, more than ", kLongestPiece)};
  }
  std::vector<uint8_t> bytes(source.charsmap.begin(), source.charsmap.end());
  STOKER_TRY(Charsmap charsmap, Charsmap::parse(std::move(bytes)));
  return std::unique_ptr<Algorithm>(std::make_unique<Unigram>(source, vocab, std::move(charsmap)));
}

}  // namespace stoker::text
