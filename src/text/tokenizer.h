#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace stoker::text {

using TokenId = int32_t;

/// What a token is; the numbers are those of `tokenizer.ggml.token_type`.
enum class TokenKind : uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// Turns bytes into token ids and back, as the file's own tokenizer does. Text is bytes: invalid UTF-8 is legal.
/// Threads: read-only after `from_gguf`, from any thread.
class Tokenizer {
 public:
  /// kNotFound: the file has no tokenizer. kUnsupported: names the model or pre-tokenizer. kCorrupt: names the key.
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::File& file);
  ~Tokenizer();
  /// At most this many bytes does the tokenizer of `file` take, building it included; for the ledger.
  static uint64_t memory_bytes(const gguf::File& file);

  struct EncodeOptions {
    bool add_special = false;   ///< BOS and EOS as the file asks.
    bool parse_special = true;  ///< Control tokens in the text are recognised.
  };
  /// Appends nothing but whole tokens; never fails, O(n log n) at worst.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;

  /// A part of a text, of which control tokens are recognised or not.
  struct Part {
    std::string_view text;
    bool parse_special = false;
  };
  /// The parts as one text: where they meet, tokens go across. No control token does.
  std::vector<TokenId> encode(std::span<const Part> parts) const;

  /// Two texts with what the file's own tokenizer puts before, between and behind them. What looks like a control token
  /// in them is text.
  struct Pair {
    std::vector<TokenId> ids;
    size_t second = 0;  ///< Where the second text begins.
  };
  Pair encode_pair(std::string_view first, std::string_view second) const;
  /// Whether two texts can be told apart: something stands between them.
  bool joins_pairs() const;

  struct DecodeOptions {
    bool show_special = false;  ///< Control tokens as their text instead of nothing.
  };
  /// The bytes of one token (empty for ids outside the vocabulary). Views stay valid with the tokenizer.
  std::string_view token_bytes(TokenId id, DecodeOptions options) const;
  std::string_view token_bytes(TokenId id) const { return token_bytes(id, DecodeOptions{}); }
  /// The concatenation, raw bytes.
  std::string decode_bytes(std::span<const TokenId> ids, DecodeOptions options) const;
  std::string decode_bytes(std::span<const TokenId> ids) const { return decode_bytes(ids, DecodeOptions{}); }
  /// As text: invalid UTF-8 becomes U+FFFD, and the one space that encoding put before the text is removed.
  std::string decode(std::span<const TokenId> ids, DecodeOptions options) const;
  std::string decode(std::span<const TokenId> ids) const { return decode(ids, DecodeOptions{}); }

  int32_t vocab_size() const;
  /// The token's text as the file stores it (escapes, U+2581 and all).
  std::string_view piece(TokenId id) const;
  TokenKind kind(TokenId id) const;
  /// End-of-generation tokens: eos, eot, eom and what tokenizers.md section 8 adds.
  bool is_end(TokenId id) const;
  TokenId bos() const;  ///< -1: none. The same for the others.
  TokenId eos() const;
  bool add_bos() const;
  bool add_eos() const;                 ///< Of a BERT vocabulary the separator.
  std::string_view model_name() const;  ///< tokenizer.ggml.model
  std::string_view pre_name() const;    ///< tokenizer.ggml.pre, empty where there is none
  /// Ids that the file forbids to sample.
  std::span<const TokenId> suppressed() const;
  /// What is odd about the file's tokenizer and no reason to refuse it, a line each.
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  Tokenizer();
  std::unique_ptr<Impl> impl_;
};

/// Joins the bytes of streamed tokens into text that never ends inside a character.
class Utf8Stream {
 public:
  /// Takes bytes, returns what is complete: valid UTF-8, each maximal invalid prefix as one U+FFFD. Holds back at most
  /// 3 bytes.
  std::string push(std::string_view bytes);
  /// What was held back, as U+FFFD; empty when nothing was.
  std::string finish();

 private:
  std::string held_;
};

}  // namespace stoker::text
