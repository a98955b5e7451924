#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gguf/file.h"
#include "text/tokenizer.h"

namespace stoker::text {

/// Where tools/get-testdata puts what it fetches.
inline std::filesystem::path testdata_dir() {
  if (const char* home = std::getenv("STOKER_HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / "testdata";
  const char* user = std::getenv("HOME");
  return std::filesystem::path(user != nullptr ? user : "/") / ".cache/stoker/testdata";
}

inline std::filesystem::path vocab_path(const std::string& name) {
  return testdata_dir() / "vocabs" / ("ggml-vocab-" + name + ".gguf");
}

/// The tokenizer of a file; a failure that says what to run, and null, when it is not there or does not load.
inline std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    ADD_FAILURE() << path << " is missing: run tools/get-testdata";
    return nullptr;
  }
  auto file = gguf::File::open(path.string());
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return nullptr;
  }
  auto tokenizer = Tokenizer::from_gguf(*file);
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }
  return std::move(tokenizer).value();
}

inline std::unique_ptr<Tokenizer> load_vocab(const std::string& name) { return load_tokenizer(vocab_path(name)); }

/// A name that the test runner takes.
inline std::string test_name(std::string name) {
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace stoker::text
