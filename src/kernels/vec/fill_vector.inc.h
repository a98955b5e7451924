// The body of fill_vector: every instruction set has all of these functions.
table.quantize_a256 = quantize_a256;
table.quantize_a32 = quantize_a32;
table.rms_norm = rms_norm;
table.add = add;
table.scale = scale;
table.silu_mul = silu_mul;
table.gelu_mul = gelu_mul;
table.softcap = softcap;
table.rope_interleaved = rope_interleaved;
table.rope_halves = rope_halves;
table.all_finite = all_finite;
table.argmax = argmax;
table.attention = attention;
table.attention_merge = attention_merge;
table.store_k = store_k;
table.store_v = store_v;
