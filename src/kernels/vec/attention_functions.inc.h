// The functions of table.h on top of vec/attention.inc.h and vec/kv_store.inc.h.

void attention(const AttentionArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      if (a.values_in_keys) return attend_latent<HalfCache>(a);
      return attend_chain<HalfCache, Direct<HalfCache>>(a);
    case KvType::kBf16:
      return a.values_in_keys ? attend_latent<PairCache>(a) : attend<Pairs>(a);
    case KvType::kF32:
      if (a.values_in_keys) return attend_latent<FloatCache>(a);
      return attend_chain<FloatCache, Direct<FloatCache>>(a);
    case KvType::kQ8_0:
      if (a.values_in_keys) return attend_latent<ByteCache>(a);
      return attend_chain<ByteCache, DirectBytes>(a);
  }
}

void attention_merge(const AttentionMergeArgs& a) noexcept { merge_parts(a); }

void index_scores(const IndexArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      return index_tiles<HalfCache>(a);
    case KvType::kBf16:
      return index_tiles<PairCache>(a);
    case KvType::kF32:
      return index_tiles<FloatCache>(a);
    case KvType::kQ8_0:
      return index_tiles<ByteCache>(a);
  }
}

bool store_k(const KvStoreArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      return store_k_words<KvType::kF16>(a);
    case KvType::kBf16:
      return store_k_words<KvType::kBf16>(a);
    case KvType::kF32:
      return store_k_words<KvType::kF32>(a);
    case KvType::kQ8_0:
      return store_k_blocks(a);
  }
  return false;
}

bool store_v(const KvStoreArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      return store_v_rows<KvType::kF16>(a);
    case KvType::kBf16:
      return store_v_pairs(a);
    case KvType::kF32:
      return store_v_rows<KvType::kF32>(a);
    case KvType::kQ8_0:
      return store_v_blocks(a);
  }
  return false;
}
