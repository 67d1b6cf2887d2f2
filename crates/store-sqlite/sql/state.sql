SELECT mark, generation FROM state WHERE id = 1
