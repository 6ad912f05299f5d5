import type { NativeLibrary } from './ffi.ts'

/** OpenSSL's ciphers and HMAC, as functions. Integers are C's `int`; pointers are addresses. */
export interface Evp {
  EVP_CIPHER_fetch(context: bigint, name: string, properties: bigint): bigint
  EVP_CIPHER_CTX_new(): bigint
  EVP_CIPHER_CTX_free(context: bigint): void
  EVP_CIPHER_CTX_set_padding(context: bigint, on: number): number
  EVP_CIPHER_CTX_get_params(context: bigint, params: bigint): number
  EVP_EncryptInit_ex2(context: bigint, cipher: bigint, key: bigint, iv: bigint, params: bigint): number
  EVP_DecryptInit_ex2(context: bigint, cipher: bigint, key: bigint, iv: bigint, params: bigint): number
  EVP_EncryptUpdate(context: bigint, out: bigint, outSize: bigint, from: bigint, size: number): number
  EVP_DecryptUpdate(context: bigint, out: bigint, outSize: bigint, from: bigint, size: number): number
  EVP_EncryptFinal_ex(context: bigint, out: bigint, outSize: bigint): number
  EVP_DecryptFinal_ex(context: bigint, out: bigint, outSize: bigint): number
  EVP_sha256(): bigint
  EVP_sha384(): bigint
  HMAC(hash: bigint, key: bigint, keySize: number, content: bigint, size: bigint, out: bigint, outSize: bigint): bigint
  ERR_clear_error(): void
}

/**
 * Binds them. On Node ≥ 26.12 a call with a parameter of type `function` goes through a shared buffer, which costs
 * about 0.6 of the general path that calls with four parameters and more take otherwise; before that it gained nothing.
 * Both are addresses to the callee.
 */
export function bindEvp({ library }: NativeLibrary, nodeVersion: string): Evp {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number)
  const address = major > 26 || (major === 26 && minor >= 12) ? 'function' : 'pointer'
  return library.getFunctions({
    EVP_CIPHER_fetch: { arguments: ['pointer', 'string', 'pointer'], return: 'pointer' },
    EVP_CIPHER_CTX_new: { arguments: [], return: 'pointer' },
    EVP_CIPHER_CTX_free: { arguments: ['pointer'], return: 'void' },
    EVP_CIPHER_CTX_set_padding: { arguments: ['pointer', 'int32'], return: 'int32' },
    EVP_CIPHER_CTX_get_params: { arguments: [address, 'pointer'], return: 'int32' },
    EVP_EncryptInit_ex2: { arguments: [address, 'pointer', 'pointer', 'pointer', 'pointer'], return: 'int32' },
    EVP_DecryptInit_ex2: { arguments: [address, 'pointer', 'pointer', 'pointer', 'pointer'], return: 'int32' },
    EVP_EncryptUpdate: { arguments: [address, 'pointer', 'pointer', 'pointer', 'int32'], return: 'int32' },
    EVP_DecryptUpdate: { arguments: [address, 'pointer', 'pointer', 'pointer', 'int32'], return: 'int32' },
    EVP_EncryptFinal_ex: { arguments: [address, 'pointer', 'pointer'], return: 'int32' },
    EVP_DecryptFinal_ex: { arguments: [address, 'pointer', 'pointer'], return: 'int32' },
    EVP_sha256: { arguments: [], return: 'pointer' },
    EVP_sha384: { arguments: [], return: 'pointer' },
    HMAC: { arguments: [address, 'pointer', 'int32', 'pointer', 'uint64', 'pointer', 'pointer'], return: 'pointer' },
    ERR_clear_error: {},
  }) as Evp
}
